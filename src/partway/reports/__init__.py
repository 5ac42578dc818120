"""Run directories to tables, figures and pages; nothing here needs a live trainer or a model."""

from partway.reports.report import write_report

__all__ = ["write_report"]
