"""Results as tables and a verdict, rendered as terminal text and HTML page (docs/guides/report.md)."""

from __future__ import annotations

from tflq.report.page import Page, render
from tflq.report.svg import Chart
from tflq.report.table import Column, Table, Verdict, Word, identifier, keys, number, word_of

__all__ = ["Chart", "Column", "Page", "Table", "Verdict", "Word", "identifier", "keys", "number", "render", "word_of"]
