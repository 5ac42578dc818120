"""The sampling tree: exactly the model's distribution, whatever is drawn beside it and however few rows."""

import numpy as np
import pytest
import torch
from goodness_of_fit import chi_square_p
from sampling_cases import (
    CONTEXT,
    END,
    enumerable_model,
    exact_probabilities,
    family,
    plain_log_probs,
    request,
    spelled_model,
    tokens_of,
)

from partway.errors import ModelError
from partway.models.engine import SamplingSettings
from partway.sampling import frontier
from partway.sampling.local_engine import LocalEngine

FAMILIES = ["gpt2", "gpt_neo", "gpt_neox", "llama", "mistral", "qwen3"]
REQUESTS = [
    request([5, 6, 7, 8, 9, 10, 11, 12], 7, "a"),
    request(list(range(20, 55)), 5, "b"),
    request([3, 4], 9, "c"),
    request([200], 4, "d"),
]
SHORT = SamplingSettings(temperature=0.8, max_completion_length=3)
LONG = SamplingSettings(temperature=0.8, max_completion_length=12)


def drawn(draws):
    """Completion to count, with the END that finished one put back."""
    return {(*tokens_of(d), END) if d.finished else tokens_of(d): d.count for d in draws}


def outlines(results):
    return [[(d.completion, d.count, d.finished) for d in draws] for draws in results]


def assert_exact(language_model, seed=1, count=20_000):
    """Chi-square of the counts of all possible completions against their exact probabilities."""
    prompt = [1, 2, 3]
    expected = exact_probabilities(language_model, prompt, 3, SHORT.temperature)
    assert sum(expected.values()) == pytest.approx(1)
    engine = LocalEngine(language_model, language=None)
    counts = drawn(engine.complete([request(prompt, count, "p")], SHORT, seed)[0])
    assert counts.keys() <= expected.keys()
    observed = [counts.get(completion, 0) for completion in expected]
    assert min(expected.values()) * count > 5, "chi-square needs five expected draws everywhere"
    probability = chi_square_p(observed, [p * count for p in expected.values()])
    assert probability > 1e-3, f"counts are not the model's: p = {probability:.2g}"


@pytest.mark.parametrize("seed", range(5))
def test_counts_follow_the_exact_distribution(seed):
    assert_exact(enumerable_model(), seed)


def one_number_per_row(draw):
    def mutant(logits, settings, rows, uniforms):
        of_row = torch.zeros(len(logits), dtype=uniforms.dtype)
        of_row[rows] = uniforms
        return draw(logits, settings, rows, of_row[rows])

    return mutant


def a_number_for_eight(draw):
    def mutant(logits, settings, rows, uniforms):
        order = torch.arange(len(uniforms))
        return draw(logits, settings, rows, uniforms[order - order % 8])

    return mutant


def temperature_forgotten(draw):
    return lambda logits, settings, rows, uniforms: draw(logits, SamplingSettings(1.0), rows, uniforms)


def rows_mixed_up(draw):
    return lambda logits, settings, rows, uniforms: draw(logits.flip(0), settings, rows, uniforms)


def numbers_not_uniform(draw):
    return lambda logits, settings, rows, uniforms: draw(logits, settings, rows, uniforms**1.1)


def numbers_sorted_by_row(draw):
    """Every number is right and used once, but a sample's number depends on the others'."""
    return lambda logits, settings, rows, uniforms: draw(logits, settings, rows, uniforms.sort().values)


@pytest.mark.parametrize(
    "mutation",
    [
        one_number_per_row,
        a_number_for_eight,
        temperature_forgotten,
        rows_mixed_up,
        numbers_not_uniform,
        numbers_sorted_by_row,
    ],
)
def test_the_test_of_exactness_notices_samplers_that_are_not(mutation, monkeypatch):
    monkeypatch.setattr(frontier, "draw", mutation(frontier.draw))
    with pytest.raises(AssertionError, match="counts are not the model's"):
        assert_exact(enumerable_model())


def test_samples_of_one_prompt_are_independent_of_each_other():
    language_model = enumerable_model()
    prompts = [request([1, 2, 3], 2, str(number)) for number in range(1000)]
    results = LocalEngine(language_model, language=None).complete(prompts, SHORT, 0)
    share = np.mean([len(samples) == 1 for samples in results])  # both drew the same completion
    probabilities = exact_probabilities(language_model, [1, 2, 3], 3, SHORT.temperature).values()
    expected = sum(p * p for p in probabilities)
    assert share == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / len(prompts)))


@pytest.mark.parametrize("name", FAMILIES)
def test_log_probs_are_those_of_a_plain_forward(name):
    language_model = spelled_model(family(name))
    for asked, draws in zip(REQUESTS, LocalEngine(language_model).complete(REQUESTS, LONG, 3), strict=True):
        assert sum(draw.count for draw in draws) == asked.count
        prompt = language_model.codec.prompt(asked.problem.question)
        for draw in draws:
            assert draw.tokens == (*tokens_of(draw), *[language_model.codec.eos_id] * draw.finished) != ()
            plain = plain_log_probs(language_model.model, prompt, draw.tokens)
            assert draw.log_prob == pytest.approx(sum(plain), abs=1e-4 * len(plain))


@pytest.mark.parametrize("name", ["gpt_neo", "llama"])
def test_draws_do_not_depend_on_batch_mates_or_on_the_row_budget(name):
    language_model = spelled_model(family(name))
    together = outlines(LocalEngine(language_model).complete(REQUESTS, LONG, 3))
    alone = [outlines(LocalEngine(language_model).complete([asked], LONG, 3))[0] for asked in REQUESTS]
    assert together == alone
    for budget in (2, 10):
        engine = LocalEngine(language_model, row_budget=budget)
        assert outlines(engine.complete(REQUESTS[::-1], LONG, 3))[::-1] == together


def test_fewer_samples_are_the_first_of_more():
    engine = LocalEngine(enumerable_model(), language=None)
    few, many = (drawn(engine.complete([request([1], n, "p")], SHORT, 0)[0]) for n in (20, 60))
    assert sum(few.values()) == 20
    assert all(count <= many[completion] for completion, count in few.items())


def test_seeds_and_keys_give_different_draws():
    engine = LocalEngine(spelled_model(family("llama")))
    prompts = [request([5, 6, 7], 3, key) for key in ("a", "b")]
    first, second = outlines(engine.complete(prompts, LONG, 0))
    assert first != second
    assert first != outlines(engine.complete(prompts, LONG, 1))[0]
    assert first == outlines(engine.complete(prompts, LONG, 0))[0]


def test_a_shared_prefix_is_computed_once():
    language_model = enumerable_model()
    engine = LocalEngine(language_model, language=None)
    engine.complete([request([1, 2, 3], 5000, "p")], SHORT, 0)
    assert engine.tokens_computed == 2 + 1 + 3 + 9  # the prompt but its last token, then each distinct prefix


@pytest.mark.parametrize("name", FAMILIES)
def test_what_all_prompts_begin_with_is_read_once(name, monkeypatch):
    language_model = spelled_model(family(name))
    language_model.model.double()
    examples = list(range(100, 150))
    asked = [request([*examples, *rest], 4, str(rest)) for rest in ([], [7], [5, 6, 7, 8], [5, 6])]
    together = LocalEngine(language_model)
    found = outlines(together.complete(asked, LONG, 3))
    monkeypatch.setattr(frontier, "WORTH_READING_APART", 1000)
    apart = LocalEngine(language_model)
    assert outlines(apart.complete(asked, LONG, 3)) == found
    assert apart.tokens_computed - together.tokens_computed == 3 * (len(examples) - 1)
    alone = LocalEngine(language_model)
    assert [outlines(alone.complete([one], LONG, 3))[0] for one in asked] == found


def test_rows_never_exceed_the_budget(monkeypatch):
    seen = []
    forward = frontier.Frontier._forward

    def watched(self):
        seen.append(len(self.rows))
        return forward(self)

    monkeypatch.setattr(frontier.Frontier, "_forward", watched)
    engine = LocalEngine(spelled_model(family("llama")), row_budget=6)
    results = engine.complete(REQUESTS, LONG, 0)
    assert max(seen) == 6
    assert [sum(s.count for s in samples) for samples in results] == [r.count for r in REQUESTS]


def test_temperature_zero_is_greedy():
    language_model = spelled_model(family("llama"))
    settings = SamplingSettings(temperature=0, max_completion_length=8)
    [[sample]] = LocalEngine(language_model).complete([request([5, 6, 7], 50, "p")], settings, 0)
    ids = [5, 6, 7]
    for _ in range(8):
        with torch.no_grad():
            ids.append(int(language_model.model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert (tokens_of(sample), sample.count, sample.finished) == (tuple(ids[3:]), 50, False)


def test_completions_end_at_the_context():
    engine = LocalEngine(spelled_model(family("gpt_neo")))
    samples = engine.complete([request(list(range(20, 20 + CONTEXT - 5)), 20, "p")], LONG, 0)[0]
    assert max(len(sample.tokens) for sample in samples) == 5


def test_a_prompt_as_long_as_the_context_is_refused():
    with pytest.raises(ModelError, match=f"a prompt of {CONTEXT} tokens leaves no room"):
        LocalEngine(spelled_model(family("llama"))).complete([request([5] * CONTEXT, 1, "p")], LONG, 0)


def test_a_training_model_is_sampled_without_dropout_and_goes_on_training():
    config = family("gpt2")
    config.resid_pdrop = 0.9
    language_model = spelled_model(config)
    calm = outlines(LocalEngine(language_model).complete(REQUESTS, LONG, 0))
    language_model.model.train()
    assert outlines(LocalEngine(language_model).complete(REQUESTS, LONG, 0)) == calm
    assert language_model.model.training


def test_no_prompts_and_no_samples_give_nothing():
    engine = LocalEngine(spelled_model(family("llama")))
    assert engine.complete([], LONG, 0) == []
    assert engine.complete([request([5, 6], 0, "p")], LONG, 0) == [[]]


def test_an_engine_tells_how_many_samples_have_ended_while_it_draws():
    engine = LocalEngine(spelled_model(family("llama")), language=None)
    told: list[int] = []
    engine.on_drawn = told.append
    engine.complete(REQUESTS, LONG, 0)
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == sum(one.count for one in REQUESTS)


def test_problems_are_handed_over_while_others_are_drawn_with_the_samples_of_all_at_once():
    engine = LocalEngine(spelled_model(family("llama")), language=None, row_budget=8)
    whole = engine.complete(REQUESTS, LONG, 0)
    found, told = {}, []

    def tell(drawn: int) -> None:  # those beside what was handed over
        told.append(drawn + sum(REQUESTS[index].count for index in found))

    engine.on_drawn = tell
    calls = []  # so many of them when each problem was handed over
    for index, samples in engine.stream(REQUESTS, LONG, 0):
        assert torch.is_grad_enabled(), "who gets samples may learn from them at once"
        found[index] = samples
        calls.append(len(told))
    assert [found[index] for index in range(len(REQUESTS))] == whole
    assert len(set(calls)) > 1, "while others are drawn"
    assert told == sorted(told)
    assert told[-1] == sum(one.count for one in REQUESTS)
