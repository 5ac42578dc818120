"""On an Apple GPU, which has no float64, samples and gradients are those of a CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from apple_gpu import apple_gpu
from sampling_cases import family, request, spelled_model
from scoring_cases import learn, tiny

from partway.learning.layouts import Flat, Layout, Tree, TreeRows
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Targets
from partway.models.engine import SamplingSettings
from partway.objectives import objective
from partway.sampling.local_engine import LocalEngine, TreeSampler
from partway.sampling.samplers import Sampler
from partway.shortcuts.marching import OWN_CACHE, WHOLE_TEXTS

DRAFTS = [[5, 266, 491, 430], [35, 57, 210]]
REQUESTS = [request([5, 6, 7], 3, "a", drafts=DRAFTS), request([5, 6, 7, 8, 9], 3, "b")]


def drawn(sampler: Sampler, layout: Layout | None, device: str) -> list[list[tuple[object, ...]]]:
    language_model = spelled_model(family("llama"))
    engine = LocalEngine(replace(language_model, model=language_model.model.to(device)), layout=layout)
    assert engine.sampler == TreeSampler()
    engine.sampler = sampler
    results = engine.complete(REQUESTS, SamplingSettings(0.8, max_completion_length=5), 3)
    return [[(one.tokens, one.count, one.drafted) for one in samples] for samples in results]


@pytest.mark.parametrize(
    ("sampler", "layout"),
    [(TreeSampler(), None), (TreeSampler(), Tree()), (OWN_CACHE, None), (WHOLE_TEXTS, None)],
    ids=["tree", "guessing", "own_cache", "whole_texts"],
)
def test_samples_are_those_of_a_cpu(sampler: Sampler, layout: Layout | None) -> None:
    with apple_gpu():
        found = drawn(sampler, layout, "mps")
    assert found == drawn(sampler, layout, "cpu")


def credited_targets() -> Targets:
    """Three targets, one of which counts its tokens differently."""
    targets = Targets.of((5, 6), [(7, 8, 9), (7, 8, 4), (7, 3)])
    first, *others = targets.targets
    return replace(targets, targets=(replace(first, credits=(0.5, 1.0, 2.0)), *others))


@pytest.mark.parametrize("layout", [Tree(), TreeRows(), Flat()], ids=lambda one: one.name)
def test_losses_and_gradients_are_those_of_a_cpu(layout: Layout) -> None:
    batch = [credited_targets(), Targets.of((1, 2, 3), [(4, 5)])]
    model, loss = tiny("llama"), objective("beta_mml", normalization="length")
    scorer = Scorer(model, 0, layout=layout)
    losses, expected = learn(scorer, model, scorer.plan(batch), loss)
    with apple_gpu():
        model = tiny("llama").to("mps")
        scorer = Scorer(model, 0, layout=layout)
        assert scorer.layout == layout
        found, gradients = learn(scorer, model, scorer.plan(batch), loss)
        torch.testing.assert_close(found, losses)
        for name, gradient in gradients.items():
            torch.testing.assert_close(gradient.cpu(), expected[name])
