"""Guided sampling with a scripted engine, and completing with a model in this process."""

from collections import Counter
from dataclasses import replace

import pytest
from goodness_of_fit import chi_square_p
from sampling_cases import APPLES
from stateful_cases import stateful_model

from partway import registry, trace
from partway.buffer import Rules, SolutionBuffer
from partway.errors import ConfigError
from partway.models.engine import SamplingSettings
from partway.models.tiny import build_tiny_model
from partway.problem import Problem
from partway.sample import Request, Sample
from partway.sampling.guided import Guide, sample_solutions
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY

SETTINGS = SamplingSettings(max_completion_length=6)
PEARS = Problem("pears", "Ben has 4 pears and eats 1. How many?", 3, "n0 = 4\nn1 = 1\nanswer = n0 - n1")


class ScriptedEngine:
    """Completes everything with one step and remembers what it was asked."""

    def __init__(self):
        self.requests = []

    def complete(self, requests, settings, seed):
        self.requests += requests
        return [[r.sample("answer = 1\n", r.count)] for r in requests]


def buffers(keeps_partial=True):
    """Buffers of both problems; that of the apples has seen four partially-correct solutions."""
    made = {p.id: SolutionBuffer.seeded(p, Rules(keeps_partial=keeps_partial)) for p in (APPLES, PEARS)}
    for beginning in ("x = 12", "y = 12", "a = 12\nb = 3", "b = 3\na = 12"):
        made["apples"].consider(trace(f"{beginning}\nanswer = 1"))
    return made


def test_every_problem_gets_one_prefix_and_so_many_completions():
    engine = ScriptedEngine()
    sampled = sample_solutions(engine, [APPLES, PEARS], buffers(), Guide(5), SETTINGS, seed=0)
    assert [(problem, sample.count) for problem, sample in sampled] == [(APPLES, 5), (PEARS, 5)]
    for (problem, sample), request in zip(sampled, engine.requests, strict=True):
        assert (sample.problem, sample.prefix) == (problem.id, request.prefix.text)
        assert sample.text == "".join(f"{step}\n" for step in request.prefix.steps) + "answer = 1\n"


def test_prefixes_are_uniform_over_the_empty_and_the_partially_correct_solutions():
    engine, kept = ScriptedEngine(), buffers()
    for seed in range(1200):
        sample_solutions(engine, [APPLES], kept, Guide(), SETTINGS, seed)
    counts = Counter(request.prefix for request in engine.requests)
    assert set(counts) == {EMPTY, *kept["apples"].partially_correct}
    assert len(counts) == 5
    assert chi_square_p(list(counts.values())) > 1e-3


def test_problems_of_a_step_do_not_share_the_luck_by_which_their_prefixes_are_drawn():
    made = {name: SolutionBuffer.seeded(replace(APPLES, id=name)) for name in ("one", "other")}
    for buffer in made.values():
        buffer.consider(trace("x = 12\nanswer = 1"))
    problems = [buffer.problem for buffer in made.values()]
    drawn = (Guide().requests(problems, made, seed) for seed in range(100))
    counts = Counter((bool(one.prefix), bool(other.prefix)) for one, other in drawn)
    assert min(counts[one, other] for one in (True, False) for other in (True, False)) > 10


def test_a_prefix_without_room_is_not_drawn_and_the_others_stay_uniform():
    engine, kept = ScriptedEngine(), buffers()
    kept["apples"].consider(trace("y = 12\nanswer = y - 2"))
    too_long = kept["apples"].partially_correct[0]

    def has_room(_, prefix):
        return prefix != too_long

    for seed in range(1200):
        sample_solutions(engine, [APPLES], kept, Guide(has_room=has_room), SETTINGS, seed)
    counts = Counter(request.prefix for request in engine.requests)
    assert set(counts) == {EMPTY, *kept["apples"].partially_correct} - {too_long}
    assert len(counts) > 1
    assert chi_square_p(list(counts.values())) > 1e-3


def test_where_every_prefix_has_room_the_draws_are_what_they_were_without_asking():
    asking, plain = ScriptedEngine(), ScriptedEngine()
    for seed in range(50):
        sample_solutions(asking, [APPLES, PEARS], buffers(), Guide(has_room=lambda *_: True), SETTINGS, seed)
        sample_solutions(plain, [APPLES, PEARS], buffers(), Guide(), SETTINGS, seed)
    assert asking.requests == plain.requests


def test_without_partial_solutions_everything_starts_from_the_empty_one():
    engine = ScriptedEngine()
    for seed in range(20):
        sample_solutions(engine, [APPLES, PEARS], buffers(keeps_partial=False), Guide(), SETTINGS, seed)
    assert {request.prefix for request in engine.requests} == {EMPTY}


def test_the_drafts_of_a_problem_are_what_its_buffer_keeps():
    engine, kept = ScriptedEngine(), buffers()
    sample_solutions(engine, [APPLES, PEARS], kept, Guide(), SETTINGS, seed=0)
    for request in engine.requests:
        buffer = kept[request.problem.id]
        assert set(request.drafts) == {*buffer.fully_correct, *buffer.partially_correct}
    assert len(engine.requests[0].drafts) > 1


def test_what_a_problem_gets_does_not_depend_on_the_problems_beside_it():
    alone, beside = ScriptedEngine(), ScriptedEngine()
    for seed in range(20):
        sample_solutions(alone, [APPLES], buffers(), Guide(), SETTINGS, seed)
        sample_solutions(beside, [PEARS, APPLES], buffers(), Guide(), SETTINGS, seed)
    assert alone.requests == [request for request in beside.requests if request.problem.id == "apples"]


@pytest.mark.parametrize(
    ("completion", "finished", "text"),
    [
        ("answer = n0\n", True, "n0 = 12\nanswer = n0\n"),
        ("answer = n0", True, "n0 = 12\nanswer = n0"),
        ("n1 = 3\nanswer = n", False, "n0 = 12\nn1 = 3\n"),
        ("n1 = ", False, "n0 = 12\n"),
        ("n1 = 3\n", False, "n0 = 12\nn1 = 3\n"),
        ("", True, "n0 = 12\n"),
    ],
)
def test_the_text_to_trace_leaves_an_unclosed_last_line_out(completion, finished, text):
    assert Sample("p", "n0 = 12", completion, 1, finished).text == text


@pytest.fixture(scope="module")
def language_model():
    return build_tiny_model([APPLES, PEARS], hidden_size=32, layers=1)


def test_a_local_engine_completes_prefixes_of_any_length(language_model):
    engine = LocalEngine(language_model)
    requests = [Request(APPLES, APPLES.reference.prefix(2), 7), Request(PEARS, EMPTY, 4)]
    for request, draws in zip(requests, engine.complete(requests, SETTINGS, 0), strict=True):
        assert sum(draw.count for draw in draws) == request.count
        assert all(draw.text.startswith(request.prefix.text) for draw in draws)
        assert all(draw.log_prob < 0 and 0 < len(draw.tokens) <= 6 for draw in draws)
    again = engine.complete(requests[::-1], SETTINGS, 0)[::-1]
    assert [[d.completion for d in draws] for draws in again] == [
        [d.completion for d in draws] for draws in engine.complete(requests, SETTINGS, 0)
    ]


def test_a_local_engine_decodes_and_cuts_what_was_drawn(language_model):
    engine = LocalEngine(language_model)
    request = Request(APPLES, EMPTY, 40)
    for draw in engine.complete([request], SETTINGS, 0)[0]:
        assert draw.finished or len(draw.tokens) == SETTINGS.max_completion_length
        assert draw.completion.startswith(draw.text)
        assert draw.finished or draw.text == "" or draw.text.endswith("\n")


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_p": 0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"max_completion_length": 0},
    ],
)
def test_impossible_settings_are_refused_with_a_hint(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} is .*; try "):
        SamplingSettings(**wrong)


def test_a_model_that_the_tree_is_wrong_for_is_refused_where_nothing_else_is_there(monkeypatch):
    monkeypatch.setattr(registry, "_found", lambda: ((), ("shortcuts",)))
    with pytest.raises(ConfigError, match=r"part 'own_cache' of the samplers.*; not here: shortcuts"):
        LocalEngine(stateful_model("mamba"))
