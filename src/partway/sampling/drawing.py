"""Draws tokens, with one uniform number for each sample and position.

Every sample has its own stream of uniform numbers, which depends only on the seed, the prompt's key and the
sample's index. A token is the inverse of the cumulative distribution at the next number of the stream, so
what a sample becomes does not depend on the samples drawn with it.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from partway.errors import ModelError
from partway.learning.token_tree import Integers
from partway.models.engine import SamplingSettings

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: what SplitMix64 counts in
UNIFORM_BITS = 40  # so that a uniform number plus a row number below 2^13 is an exact float64
MAX_CELLS = 4096  # longest cumulative distribution held in float64 per row


def step_seed(seed: int, step: int, purpose: str) -> int:
    """The seed of one purpose in one step: none of them shares its random numbers with another."""
    return int.from_bytes(blake2b(f"{seed}/{step}/{purpose}".encode(), digest_size=7).digest())


def streams(seed: int, key: str, count: int) -> NDArray[np.uint64]:
    """The streams of a prompt's samples 0 .. count-1; the first ones are the same whatever the count."""
    digest = blake2b(f"{seed}:{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    start = np.frombuffer(digest, np.uint64)
    return _mixed(start + GOLDEN * np.arange(1, count + 1, dtype=np.uint64))


def uniforms(streams_S: NDArray[np.uint64], depths_S: Integers) -> NDArray[np.float64]:
    """Each stream's number in [0, 1) at its depth."""
    bits = _mixed(streams_S + GOLDEN * (depths_S.astype(np.uint64) + np.uint64(1)))
    return (bits >> np.uint64(64 - UNIFORM_BITS)).astype(np.float64) * 2.0**-UNIFORM_BITS


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def to_draw_from(logits: Tensor) -> Tensor:
    """Logits in float32; those on Apple's GPUs, which have no float64 to sum in, come to the CPU."""
    return logits.float() if logits.device.type != "mps" else logits.float().cpu()


def draw(logits_RV: Tensor, settings: SamplingSettings, rows_S: Tensor, uniforms_S: Tensor) -> Tensor:
    """One token per sample from the distribution of the sample's row; any token if that is not finite."""
    if settings.temperature == 0:
        return logits_RV.argmax(-1)[rows_S]
    return _inverse_cdf(distribution(logits_RV, settings), rows_S, uniforms_S)


def fetched(logits_RV: Tensor, rows_S: Tensor, drawn_S: Tensor) -> tuple[Integers, NDArray[np.float64]]:
    """The tokens drawn and their log-probs at temperature 1, in one copy, since a GPU is waited for."""
    log_probs_S = logits_RV[rows_S, drawn_S] - logits_RV.logsumexp(-1)[rows_S]
    tokens, log_probs = torch.stack([drawn_S.double(), log_probs_S.double()]).cpu().numpy()
    if not np.isfinite(log_probs).all():
        raise ModelError(
            "the model's outputs are not finite numbers, so its weights are broken; "
            "take an earlier checkpoint, or train again with a lower learning_rate or in float32"
        )
    return tokens.astype(np.int64), log_probs


def distribution(logits_RV: Tensor, settings: SamplingSettings) -> Tensor:
    """What tokens are drawn from: temperature, then top_k, then top_p, as transformers' warpers do it."""
    # The largest becomes 0, so that no temperature, however low, overflows.
    scores_RV = (logits_RV - logits_RV.amax(-1, keepdim=True)).div_(settings.temperature)
    if 0 < settings.top_k < scores_RV.shape[-1]:
        least_R1 = scores_RV.topk(settings.top_k, dim=-1).values[:, -1:]
        scores_RV = scores_RV.masked_fill(scores_RV < least_R1, -torch.inf)
    probs_RV = scores_RV.softmax(-1)
    return probs_RV if settings.top_p == 1 else _nucleus(probs_RV, settings.top_p)


def _nucleus(probs_RV: Tensor, top_p: float) -> Tensor:
    """The most probable tokens that together reach `top_p`, renormalised; always at least one."""
    ascending_RV, order_RV = probs_RV.sort(dim=-1)
    dropped_RV = ascending_RV.cumsum(-1) <= 1 - top_p
    # The most probable one stays, whatever rounding made of the sum.
    dropped_RV[:, -1] = False
    kept_RV = probs_RV.masked_fill(dropped_RV.scatter(-1, order_RV, dropped_RV), 0.0)
    return kept_RV / kept_RV.sum(-1, keepdim=True)


def _inverse_cdf(probs_RV: Tensor, rows_S: Tensor, uniforms_S: Tensor) -> Tensor:
    """The first token at which a row's cumulative distribution exceeds the sample's uniform number.

    The vocabulary is cut into cells whose probabilities are summed in float64; the cell is found by one
    binary search over all rows laid end to end (row r's distribution is shifted by r), then the token in it.
    """
    row_count, size = probs_RV.shape
    width = -(-size // MAX_CELLS)
    probs_RCW = torch.nn.functional.pad(probs_RV, (0, -size % width)).view(row_count, -1, width)
    cumulated_RC = probs_RCW.sum(-1, dtype=torch.float64) if width > 1 else probs_RV.double()
    cumulated_RC = cumulated_RC.cumsum_(-1)
    cells = cumulated_RC.shape[-1]
    shifts_R1 = torch.arange(row_count, device=probs_RV.device, dtype=torch.float64)[:, None]
    # Each row is divided by its own last sum, which is 1 but for rounding.
    flat = (cumulated_RC / cumulated_RC[:, -1:]).add_(shifts_R1).flatten()
    found_S = torch.searchsorted(flat, uniforms_S + rows_S, right=True)
    # Where numbers are not finite nothing is found, and on a GPU a place out of bounds ends everything.
    cells_S = (found_S - rows_S * cells).clamp_(0, cells - 1)
    if width == 1:
        return cells_S
    return cells_S * width + _within_cell(probs_RCW, cumulated_RC, rows_S, cells_S, uniforms_S)


def _within_cell(
    probs_RCW: Tensor, cumulated_RC: Tensor, rows_S: Tensor, cells_S: Tensor, uniforms_S: Tensor
) -> Tensor:
    inner_SW = probs_RCW[rows_S, cells_S].double().cumsum(-1)
    before_S = torch.where(cells_S > 0, cumulated_RC[rows_S, (cells_S - 1).clamp(min=0)], 0.0)
    rest_S = uniforms_S * cumulated_RC[rows_S, -1] - before_S
    largest_S = inner_SW[:, -1] * (1 - 2.0**-52)  # rounding must not lead past the cell's last token
    return (inner_SW <= rest_S.clamp(min=0).minimum(largest_S)[:, None]).sum(-1)
