"""What a run of chaos looks like: a page with a timeline picture and the figures, and the same as JSON."""

from __future__ import annotations

from proof.report.page import write_report
from proof.report.text import told

__all__ = ["told", "write_report"]
