"""Drawing tokens: transformers' warpers, inverse cumulative distributions, streams of uniform numbers."""

import numpy as np
import pytest
import torch
from goodness_of_fit import uniform_p
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from partway.models.engine import SamplingSettings
from partway.sampling.drawing import distribution, draw, streams, uniforms


def logits(rows=40, size=300, seed=0):
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(seed)) * 3


@pytest.mark.parametrize("temperature", [0.2, 0.8, 1.0, 3.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (50, 1.0), (0, 0.9), (20, 0.7), (1, 1.0), (0, 1e-6)])
def test_the_distribution_is_that_of_transformers_warpers(temperature, top_k, top_p):
    scores = TemperatureLogitsWarper(temperature)(None, logits())
    if top_k:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(None, scores)
    ours = distribution(logits(), SamplingSettings(temperature, top_p, top_k))
    torch.testing.assert_close(ours, scores.softmax(-1), atol=1e-6, rtol=1e-4)
    assert ((ours > 0) == (scores.softmax(-1) > 0)).all()


def test_top_k_beyond_the_vocabulary_keeps_everything():
    everything = distribution(logits(size=10), SamplingSettings(1.0, top_k=0))
    assert torch.equal(distribution(logits(size=10), SamplingSettings(1.0, top_k=50)), everything)


@pytest.mark.parametrize("size", [5, 300, 4096, 4097, 50_257])
def test_a_token_is_where_the_cumulative_distribution_passes_the_number(size):
    settings = SamplingSettings(0.8, top_k=min(40, size))
    values, rows = logits(8, size), torch.arange(800) % 8
    numbers = torch.from_numpy(uniforms(streams(0, "numbers", 800), np.zeros(800, np.int64)))
    tokens = draw(values, settings, rows, numbers)
    exact = distribution(values, settings).double()
    above = exact.cumsum(-1)[rows, tokens] / exact.sum(-1)[rows]
    below = above - exact[rows, tokens]
    assert (exact[rows, tokens] > 0).all()
    assert (below <= numbers + 1e-6).all()
    assert (numbers <= above + 1e-6).all()


@pytest.mark.parametrize("size", [6, 10_000])
def test_numbers_at_the_edges_draw_possible_tokens(size):
    values = torch.full((3, size), -torch.inf)
    values[0, 2], values[1, 0], values[2, size - 1] = 0.0, 0.0, 0.0
    rows = torch.tensor([0, 1, 2, 0, 1, 2])
    numbers = torch.tensor([0.0] * 3 + [1 - 2.0**-40] * 3, dtype=torch.float64)
    tokens = draw(values, SamplingSettings(1.0), rows, numbers)
    assert tokens.tolist() == [2, 0, size - 1, 2, 0, size - 1]


@pytest.mark.parametrize("temperature", [0.0, 1e-3, 1e-30, 1e-45])
def test_temperatures_down_to_zero_are_greedy(temperature):
    values, rows = logits(), torch.arange(40)
    numbers = torch.full((40,), 0.999, dtype=torch.float64)
    tokens = draw(values, SamplingSettings(temperature), rows, numbers)
    assert torch.equal(tokens, values.argmax(-1))


def test_streams_are_uniform_along_depth_and_across_samples_and_keys():
    depths = np.zeros(20_000, np.int64)
    across = uniforms(streams(7, "apples", 20_000), depths)
    along = uniforms(np.repeat(streams(7, "apples", 1), 20_000), np.arange(20_000))
    by_key = np.concatenate([uniforms(streams(7, str(key), 1), depths[:1]) for key in range(3000)])
    for numbers in (across, along, by_key):
        assert numbers.min() >= 0
        assert numbers.max() < 1
        assert uniform_p(numbers) > 1e-3
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 4 / np.sqrt(len(numbers))


def test_streams_are_distinct_and_depend_on_seed_and_key_only():
    first = streams(0, "apples", 1000)
    assert len(np.unique(first)) == 1000
    assert np.array_equal(streams(0, "apples", 10), first[:10])
    for other in (streams(1, "apples", 1000), streams(0, "pears", 1000), streams(-1, "", 1000)):
        assert not np.isin(other, first).any()
