"""The run directory: everything that any report, page, resume or audit needs is a file in it."""

from partway.runs.rows import Row, json_line, read_json, read_rows
from partway.runs.run import Run, SelfSample, programs_for

__all__ = ["Row", "Run", "SelfSample", "json_line", "programs_for", "read_json", "read_rows"]
