"""B, M and the verdict on a sample (Algorithm 3)."""

from partway.buffer.buffer import SolutionBuffer
from partway.buffer.doubts import audit_together
from partway.buffer.seeding import reconsider, reference_traces, seed_buffers, write_buffers
from partway.buffer.verdicts import Rules, Verdict

__all__ = [
    "Rules",
    "SolutionBuffer",
    "Verdict",
    "audit_together",
    "reconsider",
    "reference_traces",
    "seed_buffers",
    "write_buffers",
]
