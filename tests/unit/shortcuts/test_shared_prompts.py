"""Rows behind shared prompts: the samples of whole rows, with keys and values of a prompt kept once."""

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
from transformers import GPTNeoConfig, MistralConfig

from partway.learning.layouts import Tree
from partway.models.engine import SamplingSettings
from partway.sampling import frontier
from partway.sampling.local_engine import LocalEngine, TreeSampler, fastest_sampler, token_bytes
from partway.sampling.samplers import checked_sampler
from partway.shortcuts import shared_prompts
from partway.shortcuts.marching import OWN_CACHE
from partway.shortcuts.shared_prompts import SharedPromptCache

SHARED = TreeSampler(SharedPromptCache)
SETTINGS = SamplingSettings(temperature=0.8, max_completion_length=14)
PROMPTS = {"a": [5, 6, 7, 8, 9, 10, 11, 12], "b": list(range(20, 55)), "c": [3, 4], "d": [200], "e": [9] * 12}


def requests(count, drafts=None):
    return [request(p, count, key, drafts=(drafts or {}).get(key, ())) for key, p in PROMPTS.items()]


def outlines(answers):
    return [[(d.completion, d.count, d.finished, d.tokens, round(d.log_prob, 6)) for d in a] for a in answers]


def exact_model(name):
    """A model of the family in float64, in which only a mistake makes another sample."""
    language_model = spelled_model(family(name))
    language_model.model.double()
    return language_model


def engine(language_model, sampler=SHARED, **options):
    made = LocalEngine(language_model, **options)
    made.sampler = sampler
    return made


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "qwen3"])
def test_samples_are_those_of_whole_rows(name):
    language_model = exact_model(name)
    made = engine(language_model, TreeSampler())
    whole = made.complete(requests(9), SETTINGS, 3)
    made.sampler = SHARED
    for budget in (None, 3, 10):
        made.row_budget = budget
        assert outlines(made.complete(requests(9), SETTINGS, 3)) == outlines(whole), budget


@pytest.mark.parametrize("longest", [44, 96])
@pytest.mark.parametrize("count", [1, 6])
def test_drafts_are_read_behind_shared_prompts_too(count, longest):
    language_model = exact_model("llama")
    found = engine(language_model).complete(requests(3), SETTINGS, 7)
    drafts = {key: [[*tokens_of(d), 2] for d in draws] for key, draws in zip(PROMPTS, found, strict=True)}
    whole = engine(language_model, TreeSampler()).complete(requests(count), SETTINGS, 7)
    drafted = engine(language_model, layout=Tree(longest)).complete(requests(count, drafts), SETTINGS, 7)
    assert outlines(drafted) == outlines(whole)
    assert sum(draw.drafted for draws in drafted for draw in draws) > 5


def test_counts_follow_the_exact_distribution():
    language_model = enumerable_model()
    settings = SamplingSettings(temperature=0.8, max_completion_length=3)
    expected = exact_probabilities(language_model, [1, 2, 3], 3, settings.temperature)
    [draws] = engine(language_model, language=None).complete([request([1, 2, 3], 20_000, "p")], settings, 1)
    counts = {(*tokens_of(d), END) if d.finished else tokens_of(d): d.count for d in draws}
    observed = [counts.get(completion, 0) for completion in expected]
    assert chi_square_p(observed, [p * 20_000 for p in expected.values()]) > 1e-3


def test_a_prompt_is_kept_once_and_only_while_rows_continue_it(monkeypatch):
    seen, forward = [], frontier.Frontier._forward

    def watched(self):
        logits = forward(self)
        keys = self.cache.stores[0][0] if self.cache.stores[0] else torch.zeros(0, 0, 0, 0)
        seen.append((len(self.rows), self.live_prompts, *keys.shape[::2], self.cache.drawn.span))
        return logits

    sharing = engine(exact_model("llama"), row_budget=12)
    monkeypatch.setattr(frontier.Frontier, "_forward", watched)
    sharing.complete(requests(9), SETTINGS, 3)
    rows, live, kept, longest, drawn = zip(*seen, strict=True)
    assert max(rows) == 12 > max(live)
    assert max(kept) < len(PROMPTS), "the first prompts should be gone when the last are read"
    assert max(longest) == 34, "the longest prompt but its last token"
    assert longest[-1] < 34, "as wide as the longest prompt that is left"
    assert max(drawn) <= SETTINGS.max_completion_length


@pytest.mark.parametrize("prompts", [1, 2])
def test_no_more_prompts_have_rows_than_the_budget_allows(prompts, monkeypatch):
    seen, forward = [], frontier.Frontier._forward

    def watched(self):
        seen.append(self.live_prompts)
        return forward(self)

    shared = engine(exact_model("llama"))
    expected = outlines(shared.complete(requests(4), SETTINGS, 3))
    monkeypatch.setattr(LocalEngine, "_budgets", lambda *_: (64, prompts))
    monkeypatch.setattr(frontier.Frontier, "_forward", watched)
    assert outlines(shared.complete(requests(4), SETTINGS, 3)) == expected
    assert max(seen) == prompts


def test_half_of_the_memory_is_for_prompts_and_half_for_what_rows_draw(monkeypatch):
    language_model = spelled_model(family("llama"))
    each = token_bytes(language_model.model)
    monkeypatch.setattr("partway.sampling.local_engine.GIB", 2 * 10 * 100 * each)
    shared = engine(language_model)
    assert shared._budgets([[0] * 50, [0] * 100], [7, 5])[1] == 10
    shared.is_end = shared.is_end[:0]  # logits apart
    assert shared._budgets([[0] * 50, [0] * 100], [40, 50])[0] == 20
    assert engine(language_model, TreeSampler())._budgets([[0] * 100], [100])[1] is None


def bare(config):
    return spelled_model(config).model.eval()


def sampler_of(config):
    model = bare(config)
    return checked_sampler(model, fastest_sampler(model))


def test_prompts_are_shared_where_keys_and_values_are_large_and_attention_sees_everything(monkeypatch):
    llama, windowed, local = family("llama"), family("mistral"), family("gpt_neo")
    assert isinstance(windowed, MistralConfig)
    assert windowed.sliding_window
    assert isinstance(local, GPTNeoConfig)
    assert sampler_of(llama) == TreeSampler(), "too small to be worth it"
    monkeypatch.setattr(shared_prompts, "WORTH_SHARING", 1)
    assert sampler_of(llama) == SHARED
    assert sampler_of(windowed) == TreeSampler()
    assert sampler_of(local) == TreeSampler()
    llama._attn_implementation = "eager"
    assert sampler_of(llama) == TreeSampler()


def test_a_model_for_which_it_is_wrong_gets_whole_rows(monkeypatch, caplog):
    update = SharedPromptCache.update

    def one_layer_late(self, *arguments, **options):
        found = update(self, *arguments, **options)
        self.latest = (self.latest[0] * 1.1, *self.latest[1:])
        return found

    model = bare(family("llama"))
    monkeypatch.setattr(SharedPromptCache, "update", one_layer_late)
    assert checked_sampler(model, SHARED) == TreeSampler()
    assert not caplog.records, "nothing that a user has to know"
    assert TreeSampler().fallback is OWN_CACHE
