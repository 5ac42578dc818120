"""The run directory: everything that any report, page, resume or audit needs is a file in it."""

from partway.runs.rows import Row, json_line, read_json, read_rows
from partway.runs.run import Run, language_for

__all__ = ["Row", "Run", "json_line", "language_for", "read_json", "read_rows"]
