"""Counts the skipped tests by reason at the end of a run; loaded with `-p tests.support.skips` (pyproject.toml)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def count_reasons(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[tuple[str, int]]:
    """Return (reason, number of tests) of skipped reports, the most frequent first, equal counts by reason."""
    counts = Counter(_reason(report) for report in reports)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one line for each reason, before pytest's own closing line."""
    reasons = count_reasons(terminalreporter.stats.get("skipped", []))
    if not reasons:
        return
    terminalreporter.section(f"skipped: {sum(count for _, count in reasons)}")
    for reason, count in reasons:
        terminalreporter.line(f"{count:6d}  {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """A skipped report holds (file, line, "Skipped: why")."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ") or "no reason given"
