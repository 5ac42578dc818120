"""Models with a running state or mixed layers: sampled from their distribution, scored one row per target."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from goodness_of_fit import chi_square_p
from sampling_cases import (
    END,
    exact_probabilities,
    family,
    plain_log_probs,
    request,
    spelled_model,
    tokens_of,
)
from scoring_cases import alone, branching, log_probs
from stateful_cases import FAMILIES, PROMISED, stateful_model
from transformers import LlamaForCausalLM

from partway.learning.scoring import Scorer
from partway.models.engine import SamplingSettings
from partway.sampling.local_engine import LocalEngine, TreeSampler, fastest_sampler
from partway.sampling.samplers import checked_sampler
from partway.shortcuts import marching
from partway.shortcuts.marching import OWN_CACHE, WHOLE_TEXTS

# Of these, what transformers keeps is wrong for several rows, cannot be selected by row, or is nothing.
READ_AGAIN = {"bamba", "minimax", "recurrent_gemma", "rwkv"}
NAMES = [name if name in PROMISED else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]
SHORT = SamplingSettings(temperature=0.8, max_completion_length=3)
LONG = SamplingSettings(temperature=0.8, max_completion_length=10)
REQUESTS = [
    request([5, 6, 7, 8, 9, 10, 11, 12], 5, "a"),
    request(list(range(20, 45)), 3, "b"),
    request([3], 6, "c"),
    request([4, 3, 2, 1, 7, 8, 9, 1], 2, "d"),
]


def outlines(results):
    return [[(d.completion, d.count, d.finished) for d in draws] for draws in results]


def assert_exact(language_model, count=6_000):
    """Chi-square of the counts of all possible completions against their exact probabilities."""
    prompt = [1, 2, 3]
    expected = exact_probabilities(language_model, prompt, 3, SHORT.temperature)
    engine = LocalEngine(language_model, language=None, row_budget=2 * count)
    others = [request([3, 2, 1, 2, 1], 7, "beside"), request([2], 5, "too")]
    draws, *_ = engine.complete([request(prompt, count, "p"), *others], SHORT, 1)
    counts = {(*tokens_of(d), END) if d.finished else tokens_of(d): d.count for d in draws}
    assert counts.keys() <= expected.keys()
    assert sum(counts.values()) == count
    rare = [completion for completion, p in expected.items() if p * count < 20]
    cells = [[completion] for completion in expected if completion not in rare] + [rare] * bool(rare)
    observed = [sum(counts.get(completion, 0) for completion in cell) for cell in cells]
    shares = np.array([sum(expected[completion] for completion in cell) for cell in cells])
    probability = chi_square_p(observed, count * shares / shares.sum())  # the sum is 1 but for rounding
    assert probability > 1e-3, f"counts are not the model's: p = {probability:.2g}"


@pytest.mark.parametrize("name", NAMES)
def test_counts_follow_the_exact_distribution(name):
    assert_exact(stateful_model(name, vocabulary=4))


def test_no_samples_of_a_problem_are_nothing():
    engine = LocalEngine(stateful_model("mamba"), language=None)
    assert isinstance(engine.sampler, marching.Marching)
    assert engine.complete([request([5, 6], 0, "p")], SHORT, 0) == [[]]


@pytest.mark.parametrize("name", NAMES)
def test_log_probs_are_those_of_a_plain_forward_whatever_the_budget(name, caplog):
    language_model = stateful_model(name)
    engine = LocalEngine(language_model, language=None)
    assert engine.sampler == (WHOLE_TEXTS if name in READ_AGAIN else OWN_CACHE)
    (warning,) = [r.getMessage() for r in caplog.records if r.name == "partway.sampling.samplers"]
    assert "cannot be sampled on a tree of shared beginnings (it " in warning
    results = engine.complete(REQUESTS, LONG, 3)
    for asked, draws in zip(REQUESTS, results, strict=True):
        assert sum(draw.count for draw in draws) == asked.count
        prompt = language_model.codec.prompt(asked.problem.question)
        for draw in draws:
            completion = [*tokens_of(draw), *[END] * draw.finished]
            plain = plain_log_probs(language_model.model, prompt, completion)
            assert draw.log_prob == pytest.approx(sum(plain), abs=1e-4 * len(plain))
    engine.row_budget = 4
    assert outlines(engine.complete(REQUESTS[::-1], LONG, 3))[::-1] == outlines(results)


@pytest.mark.parametrize("name", NAMES)
def test_targets_are_scored_in_rows_of_their_own(name):
    model = stateful_model(name).model
    scorer = Scorer(model, END, tokens_per_pass=512)
    assert scorer.layout.name == "flat"
    problem = branching(random.Random(0), 12, 4, 10)
    (found,) = log_probs(scorer, model, [problem])
    expected = torch.stack([alone(model, problem.prompt, target) for target in problem.sequences])
    torch.testing.assert_close(found, expected.detach(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("sampler", [OWN_CACHE, WHOLE_TEXTS])
@pytest.mark.parametrize("name", ["gpt_neo", "llama"])
def test_rows_in_step_draw_what_the_tree_draws(name, sampler):
    language_model = spelled_model(family(name))
    engine = LocalEngine(language_model)
    assert isinstance(engine.sampler, TreeSampler)
    expected = outlines(engine.complete(REQUESTS, LONG, 3))
    engine.sampler = sampler
    assert outlines(engine.complete(REQUESTS, LONG, 3)) == expected


def test_a_shared_beginning_is_read_once_in_step_too():
    language_model = stateful_model("mamba", vocabulary=4)
    engine = LocalEngine(language_model, language=None)
    engine.complete([request([1, 2, 3], 1000, "p")], SHORT, 0)
    assert engine.tokens_computed == 3 + 3 + 9  # the prompt, then each distinct prefix but the last tokens


class IgnoresPositions(LlamaForCausalLM):
    """Counts by place in the row, whatever positions it is given: wrong for rows of different lengths."""

    def forward(self, *args, position_ids=None, **inputs):
        return super().forward(*args, **inputs)


class RefusesCaches(IgnoresPositions):
    """Keeps nothing of what it read."""

    def forward(self, *args, use_cache=False, **inputs):
        return super().forward(*args, use_cache=False, **inputs)


@pytest.mark.parametrize(("kind", "sampler"), [(IgnoresPositions, OWN_CACHE), (RefusesCaches, WHOLE_TEXTS)])
def test_a_model_that_the_tree_would_sample_wrongly_is_not_sampled_on_it(kind, sampler):
    language_model = spelled_model(family("llama"))
    expected = outlines(LocalEngine(language_model).complete(REQUESTS, LONG, 3))
    model = kind(language_model.model.config).eval()
    model.load_state_dict(language_model.model.state_dict())
    engine = LocalEngine(replace(language_model, model=model))
    assert engine.sampler == sampler
    assert outlines(engine.complete(REQUESTS, LONG, 3)) == expected
    engine.sampler = TreeSampler()
    assert outlines(engine.complete(REQUESTS, LONG, 3)) != expected, "silently wrong"


def test_an_engine_that_is_given_another_model_checks_that():
    language_model = spelled_model(family("llama"))
    engine = LocalEngine(language_model)
    engine.update(IgnoresPositions(language_model.model.config).eval(), 1)
    assert engine.sampler == OWN_CACHE


def rows_kept_as_they_were(self, parents):
    for kept in self.kept.values():
        kept.reorder_cache(torch.from_numpy(np.sort(parents)[::-1].copy()))


def test_the_check_notices_a_cache_that_is_selected_wrongly(monkeypatch):
    monkeypatch.setattr(marching.OwnCache, "select", rows_kept_as_they_were)
    model = stateful_model("mamba").model
    assert checked_sampler(model, fastest_sampler(model)) == WHOLE_TEXTS


def test_the_page_on_performance_names_every_family_with_its_sampler():
    page = Path(__file__).parents[3] / "docs" / "performance.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.endswith("` |")]
    for name in FAMILIES:
        (row,) = [row for row in rows if f"`{name}`" in row]
        assert row.endswith(f"| `flat` | `{'whole_texts' if name in READ_AGAIN else 'own_cache'}` |")
