"""Drafts: the same samples for the same seeds, whatever was guessed, in fewer forwards where it was right."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from goodness_of_fit import chi_square_p
from sampling_cases import (
    END,
    enumerable_model,
    exact_probabilities,
    family,
    request,
    spelled_model,
    tokens_of,
)
from transformers import DynamicCache, GPTNeoConfig, MistralConfig

from partway.demo.storyproblems import generate_problems
from partway.learning.layout_check import checked_layout
from partway.learning.layouts import Flat, Tree
from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.sample import Request
from partway.sampling import frontier, local_engine
from partway.sampling.local_engine import LocalEngine, TreeSampler
from partway.shortcuts import guessing
from partway.shortcuts.gaps import GappedRowCache
from partway.shortcuts.guessing import SURE, UNSURE, Drafts
from partway.solution import EMPTY, Solution

TREE = Tree(96)
SETTINGS = SamplingSettings(temperature=0.5, max_completion_length=14)
PROMPTS = {"a": [5, 6, 7, 8, 9, 10, 11, 12], "b": list(range(20, 55)), "c": [3, 4], "d": [200]}


def outlines(answers):
    return [[(d.completion, d.count, d.finished, d.tokens, round(d.log_prob, 3)) for d in a] for a in answers]


def requests(count, drafts=None, prefix=()):
    drafts = drafts or {}
    return [request(p, count, key, prefix=prefix, drafts=drafts.get(key, ())) for key, p in PROMPTS.items()]


def some_samples(language_model, **options):
    """What the model draws with another seed and a few with the same one: drafts as good as drafts can be."""
    engine = LocalEngine(language_model)
    found = {key: [] for key in PROMPTS}
    for seed in (0, 7):
        for key, draws in zip(PROMPTS, engine.complete(requests(3, **options), SETTINGS, seed), strict=True):
            prefix = list(options.get("prefix", ()))
            found[key] += [[*prefix, *tokens_of(draw), 2] for draw in draws]
    return found


def count_forwards(monkeypatch):
    """A list that grows by the number of tokens per row at each forward of the frontier."""
    seen, run, read = [], frontier.Frontier._run, frontier.Frontier._read_packed

    def watched(self, ids, count, **inputs):
        seen.append(ids.shape[1])
        return run(self, ids, count, **inputs)

    def watched_read(self, texts, ahead):
        seen.append(sum(map(len, texts)))
        return read(self, texts, ahead)

    # The check at start draws too, which is not to be counted.
    monkeypatch.setattr(local_engine, "checked_sampler", lambda model, wanted, pad_id: TreeSampler())
    monkeypatch.setattr(frontier.Frontier, "_run", watched)
    monkeypatch.setattr(frontier.Frontier, "_read_packed", watched_read)
    return seen


def exact_family(name):
    """A model of the family in float64, with windows longer than the texts where it has any."""
    config = family(name)
    if isinstance(config, GPTNeoConfig):
        config.window_size = 80
    if isinstance(config, MistralConfig):
        config.sliding_window = 80
    language_model = spelled_model(config)
    language_model.model.double()
    return language_model


@pytest.mark.parametrize("name", ["gpt2", "gpt_neo", "gpt_neox", "llama", "mistral", "qwen3"])
def test_samples_are_those_without_drafts(name, monkeypatch):
    language_model = exact_family(name)
    layout = checked_layout(language_model.model, Tree(64))
    assert layout.name.startswith("tree")
    drafts = some_samples(language_model)
    plain = LocalEngine(language_model).complete(requests(6), SETTINGS, 7)
    seen = count_forwards(monkeypatch)
    drafted = LocalEngine(language_model, layout=layout).complete(requests(6, drafts), SETTINGS, 7)
    assert outlines(drafted) == outlines(plain)
    assert max(seen[1:]) > 1, "nothing was guessed"
    assert sum(draw.drafted for draws in drafted for draw in draws) > 20
    assert all(0 <= draw.drafted <= len(draw.tokens) for draws in drafted for draw in draws)
    assert not any(draw.drafted for draws in plain for draw in draws)


@pytest.mark.parametrize("count", [1, 9])
def test_neither_budgets_nor_the_length_of_rows_matter(count):
    language_model = exact_family("llama")
    drafts = some_samples(language_model)
    plain = outlines(LocalEngine(language_model).complete(requests(count), SETTINGS, 7))
    for budget, longest in product((None, 4), (24, 40, 96)):
        engine = LocalEngine(language_model, row_budget=budget, layout=Tree(longest))
        drawn = outlines(engine.complete(requests(count, drafts), SETTINGS, 7))
        assert drawn == plain, (budget, longest)


def test_right_drafts_save_forwards(monkeypatch):
    language_model = exact_family("llama")
    drafts = some_samples(language_model)
    seen = count_forwards(monkeypatch)
    LocalEngine(language_model).complete(requests(1), SETTINGS, 7)
    plain = len(seen)
    LocalEngine(language_model, layout=TREE).complete(requests(1, drafts), SETTINGS, 7)
    assert len(seen) - plain < plain / 2


def test_a_token_is_drafted_if_it_needed_no_forward_of_its_own(monkeypatch):
    language_model = exact_family("llama")
    drafts = some_samples(language_model)
    for key, prompt in PROMPTS.items():
        seen = count_forwards(monkeypatch)
        asked = request(prompt, 1, key, drafts=drafts[key])
        [[draw]] = LocalEngine(language_model, layout=TREE).complete([asked], SETTINGS, 7)
        assert draw.drafted == len(draw.tokens) - len(seen) > 0


@pytest.mark.parametrize("longest", [34, 35])
def test_prompts_that_fit_are_read_in_one_row_with_their_first_guesses(longest, monkeypatch):
    language_model = exact_family("llama")
    plain = LocalEngine(language_model).complete(requests(3), SETTINGS, 7)
    seen = count_forwards(monkeypatch)
    engine = LocalEngine(language_model, layout=Tree(longest))
    assert outlines(engine.complete(requests(3), SETTINGS, 7)) == outlines(plain)
    in_one_row = sum(map(len, PROMPTS.values()))
    assert seen[0] == (in_one_row if longest == 35 else 34)  # else padded, all but the last token
    assert len(seen) == SETTINGS.max_completion_length + (longest == 34)


def test_prefixes_are_continued_with_drafts_that_begin_with_them():
    language_model, prefix = exact_family("llama"), (40, 41, 42)
    drafts = some_samples(language_model, prefix=prefix)
    plain = LocalEngine(language_model).complete(requests(5, prefix=prefix), SETTINGS, 7)
    engine = LocalEngine(language_model, layout=TREE)
    drafted = engine.complete(requests(5, drafts, prefix=prefix), SETTINGS, 7)
    assert outlines(drafted) == outlines(plain)
    assert sum(draw.drafted for draws in drafted for draw in draws) > 20


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_completion_is_not_longer_for_being_guessed(length):
    language_model = exact_family("gpt2")
    drafts = some_samples(language_model)
    settings = replace(SETTINGS, max_completion_length=length)
    plain = LocalEngine(language_model).complete(requests(5), settings, 7)
    drafted = LocalEngine(language_model, layout=TREE).complete(requests(5, drafts), settings, 7)
    assert outlines(drafted) == outlines(plain)
    assert max(len(draw.tokens) for draws in drafted for draw in draws) == length


@pytest.mark.parametrize("drafts", [[], [[400, 401, 402, 403]], [[END]], [[1, 1, 1]], [[7, 7, 7, 7, 7, 7]]])
def test_drafts_that_are_of_no_use_change_nothing(drafts):
    language_model = exact_family("llama")
    plain = LocalEngine(language_model).complete(requests(4), SETTINGS, 7)
    useless = requests(4, dict.fromkeys(PROMPTS, drafts))
    assert outlines(LocalEngine(language_model, layout=TREE).complete(useless, SETTINGS, 7)) == outlines(
        plain
    )


@pytest.mark.parametrize("seed", range(3))
def test_counts_follow_the_exact_distribution_also_with_drafts(seed):
    language_model, prompt, count = enumerable_model(), [1, 2, 3], 20_000
    settings = SamplingSettings(temperature=0.8, max_completion_length=3)
    expected = exact_probabilities(language_model, prompt, 3, 0.8)
    engine = LocalEngine(language_model, language=None, layout=TREE)
    asked = request(prompt, count, "p", drafts=[[1, 1, 1, 1], [3, 2, 1, 1], [2, 2, 2]])
    (draws,) = engine.complete([asked], settings, seed)
    assert any(draw.drafted for draw in draws)
    counts = {(*tokens_of(d), END) if d.finished else tokens_of(d): d.count for d in draws}
    observed = [counts.get(completion, 0) for completion in expected]
    assert sum(observed) == count
    assert chi_square_p(observed, [p * count for p in expected.values()]) > 1e-3


@pytest.fixture(scope="module")
def storyteller():
    language_model = load_model("tiny-storyproblems")
    language_model.model.double()
    return language_model


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 6])
def test_a_trained_model_writes_the_same_solutions(storyteller, count):
    problems = generate_problems(8, seed=11)
    settings = SamplingSettings(max_completion_length=60)
    plain, ahead = LocalEngine(storyteller), LocalEngine(storyteller, layout=Tree())
    for seed in range(3):
        asked = [Request(p, p.reference.prefix(i % 2), count) for i, p in enumerate(problems)]
        written = plain.complete(asked, settings, seed)
        # Solutions that go on behind their answer, break off, or are the very samples.
        drafts = [
            (
                p.reference,
                Solution((*p.reference.steps, "n0 = 1")),
                p.reference.prefix(1),
                *map(as_draft, draws),
            )
            for p, draws in zip(problems, written, strict=True)
        ]
        guided = [replace(r, drafts=d) for r, d in zip(asked, drafts, strict=True)]
        drawn = ahead.complete(guided, settings, seed)
        assert outlines(drawn) == outlines(written)
        assert any(draw.finished for draws in drawn for draw in draws)
        share = sum(d.count * d.drafted for draws in drawn for d in draws) / sum(
            d.count * len(d.tokens) for draws in drawn for d in draws
        )
        assert share > 0.5


def as_draft(draw):
    return Solution(tuple(draw.text.rstrip("\n").split("\n")))


def test_wrong_guesses_end_guessing(monkeypatch):
    monkeypatch.setattr(guessing, "TRIED", 10)
    seen = count_forwards(monkeypatch)
    language_model = exact_family("llama")
    wrong = [[token, 400, 2] for token in range(2, 512)]
    asked = requests(6, dict.fromkeys(PROMPTS, wrong))
    LocalEngine(language_model, layout=TREE).complete(asked, replace(SETTINGS, temperature=2.0), 7)
    assert seen[0] > sum(map(len, PROMPTS.values())), "nothing was guessed"
    assert max(seen[1:]) == 1


@pytest.mark.parametrize("layout", [None, Flat()])
def test_a_model_that_trees_are_not_right_for_is_not_given_guesses(layout, monkeypatch):
    language_model = exact_family("llama")
    drafts = some_samples(language_model)
    seen = count_forwards(monkeypatch)
    LocalEngine(language_model, layout=layout).complete(requests(3, drafts), SETTINGS, 7)
    assert max(seen[1:]) == 1


def test_a_guess_follows_the_own_solutions_then_those_of_others():
    drafts = Drafts([(), (5, 6)], [[(1, 2, 3, 4, 5, 9)], [(5, 6, 7, 8, 9)]])
    assert list(drafts.guess(0, [], 3)) == [(1, SURE), (2, SURE), (3, SURE)]
    assert list(drafts.guess(0, [9, 9, 2, 3], 2)) == [(4, UNSURE), (5, UNSURE)]
    assert list(drafts.guess(1, [], 9)) == [(7, SURE), (8, SURE)]
    assert list(drafts.guess(1, [1, 2], 1)) == [(3, UNSURE)]
    assert list(drafts.guess(1, [77], 1)) == []


def visible(cache):
    """The tokens each row sees, read from its keys."""
    keys = cache.stores[0][0][:, 0, cache.start : cache.end, 0]
    mask = torch.from_numpy(cache.seen_by_several(1))[:, 0, 0, :-1]
    return [keys[row][mask[row]].tolist() for row in range(len(cache.lengths))]


def append(cache, tokens):
    cache.make_room(len(tokens[0]))
    states = torch.tensor(tokens, dtype=torch.float64)[:, None, :, None]
    cache.update(states, states, 0)
    cache.step(len(tokens[0]))


def test_rows_forget_wrong_guesses_and_see_the_rest_in_order():
    prefilled = DynamicCache()
    states = torch.tensor([[1.0, 2, 3], [4, 5, 0]], dtype=torch.float64)[:, None, :, None]
    prefilled.update(states, states, 0)
    cache = GappedRowCache(4)
    cache.admit(prefilled, np.array([3, 2]))
    append(cache, [[10, 11, 12], [20, 21, 22]])
    cache.select(np.array([0, 1, 1]))
    cache.keep(np.array([1, 3, 2]))
    expected = [[1, 2, 3, 10], [4, 5, 20, 21, 22], [4, 5, 20, 21]]
    assert visible(cache) == expected
    for number in range(30):  # the window moves
        append(cache, [[100 + number, 0, 0], [200 + number, 0, 0], [300 + number, 0, 0]])
        cache.keep(np.array([1, 1, 1]))
    tails = [[100 * row + number for number in range(30)] for row in (1, 2, 3)]
    expected = [[*row, *tail] for row, tail in zip(expected, tails, strict=True)]
    assert visible(cache) == expected
    cache.select(np.array([0, 2]))
    cache.close_gaps()
    assert visible(cache) == [expected[0], expected[2]]
    assert cache.gaps is None
    assert cache.end - cache.start == 34
    cache.admit(prefilled, np.array([3, 2]))
    append(cache, [[7], [7], [7], [7]])
    assert visible(cache) == [[*row, 7] for row in (expected[0], expected[2], [1, 2, 3], [4, 5])]
    assert cache.lengths.tolist() == [35, 35, 4, 3]


def test_rows_are_taken_from_one_row_that_holds_them_and_what_was_read_ahead():
    prefilled, cache = DynamicCache(), GappedRowCache(2)
    states = torch.arange(1.0, 10, dtype=torch.float64)[None, None, :, None]
    prefilled.update(states, states, 0)
    cache.admit(prefilled, np.array([2, 3]), starts=np.array([0, 4]), ahead=2)
    cache.step(2)
    cache.keep(np.array([2, 1]))
    assert visible(cache) == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_an_empty_solution_is_no_draft():
    language_model = exact_family("llama")
    asked = [replace(one, drafts=(EMPTY,)) for one in requests(2)]
    plain = LocalEngine(language_model).complete(requests(2), SETTINGS, 7)
    assert outlines(LocalEngine(language_model, layout=TREE).complete(asked, SETTINGS, 7)) == outlines(plain)
