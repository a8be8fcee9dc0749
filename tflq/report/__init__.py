"""Reports as one HTML page that needs nothing else: no network, no script, no file beside it (docs/report.md)."""

from __future__ import annotations

from tflq.report.page import Chart, Page, Prose, Section, Table, render

__all__ = ["Chart", "Page", "Prose", "Section", "Table", "render"]
