"""Run directories to tables, figures and pages; nothing here needs a live trainer or a model."""

from typing import TYPE_CHECKING

from partway.registry import lazy_names

if TYPE_CHECKING:
    from runreports.writing import write_report

__all__ = ["write_report"]

__getattr__ = lazy_names(__name__, {"write_report": "writing"})
