"""B, M and the verdict on a sample (Algorithm 3)."""

from partway.buffer.buffer import SolutionBuffer
from partway.buffer.rules import Rules, Verdict
from partway.buffer.seeding import reconsider, reference_traces, seed_buffers, write_buffers

__all__ = [
    "Rules",
    "SolutionBuffer",
    "Verdict",
    "reconsider",
    "reference_traces",
    "seed_buffers",
    "write_buffers",
]
