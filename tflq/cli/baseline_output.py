"""Frozen runs in words, JSON and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tflq.cli import output
from tflq.cli.baseline import Asked, Report, check, freeze


def freeze_run(asked: Asked, path: Path, as_json: bool) -> int:
    """Write a baseline and say so."""
    baseline = freeze(asked, path)
    samples = len(baseline.tensors[0].samples) if baseline.tensors else 0
    if as_json:
        output.json_report({"baseline": str(path), "tensors": len(baseline.tensors), "samples": samples})
    else:
        output.line(f"frozen: {path}: {len(baseline.tensors)} tensors, {samples} samples of {asked.model}")
    return 0


def check_baseline(path: Path, model: str | None, junit: Path | None, as_json: bool) -> int:
    """Repeat a frozen run, print what has changed and return the exit status."""
    report = check(path, model)
    if junit is not None:
        tensors = [(t.name, report.change_of(t.name), None) for t in report.baseline.tensors]
        known = {t.name for t in report.baseline.tensors}
        new = [(c.tensor, c.what, None) for c in report.changes if c.tensor not in known]
        write_junit(junit, str(path), [*tensors, *new])
    if as_json:
        output.json_report(_as_json(path, report))
    else:
        _print(path, report)
    return 0 if report.is_equal else 1


def write_junit(path: Path, suite: str, tensors: Sequence[tuple[str, str | None, str | None]]) -> None:
    """Write a result as JUnit XML.

    Args:
        path: of the file.
        suite: name of the suite.
        tensors: (name, what failed or None, why it was skipped or None) of each.
    """
    from tflq.analysis.junit import Case, junit_xml
    from tflq.files import write_bytes

    write_bytes(path, junit_xml(suite, [Case(*tensor) for tensor in tensors]))


def _print(path: Path, report: Report) -> None:
    for line in report.files:
        output.line(line)
    if report.changes:
        output.table(("tensor", "change"), [(output.short(c.tensor), c.what) for c in report.changes])
        output.line()
    changed, total = len(report.changes), len(report.baseline.tensors)
    made = f"{path}: frozen by tflq {report.baseline.version}"
    if changed:
        output.line(f"{made}: {changed} changes in {total} tensors, the first in '{report.changes[0].tensor}'")
    else:
        output.line(f"{made}: all {total} tensors are as they were")


def _as_json(path: Path, report: Report) -> dict[str, output.Json]:
    return {
        "baseline": str(path),
        "frozen_by": report.baseline.version,
        "tensors": len(report.baseline.tensors),
        "equal": report.is_equal,
        "files": report.files,
        "changes": [{"tensor": change.tensor, "what": change.what} for change in report.changes],
    }
