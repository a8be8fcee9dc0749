"""Frozen runs as pytest tests: each *.tflq.json of `tflq verify --freeze` is a file of tests, one per tensor.

The plug-in is installed with tflq and loaded by pytest; `-p no:tflq` turns it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tflq.quoting import escape_unprintable

if TYPE_CHECKING:
    from tflq.api.baseline import BaselineResult

SUFFIX = ".tflq.json"


class BaselineFile(pytest.File):
    """One frozen run; it is repeated once for all its tensors."""

    @cached_property
    def report(self) -> BaselineResult:
        """Changes since the run was frozen."""
        from tflq.api.baseline import verify_baseline

        return verify_baseline(self.path)

    def collect(self) -> Iterator[BaselineItem]:
        """Yield a test for each tensor, and one for tensors that the run did not have."""
        from tflq.diagnosis.baseline import read_baseline

        for tensor in read_baseline(self.path).tensors:
            yield BaselineItem.from_parent(self, name=escape_unprintable(tensor.name), tensor=tensor.name)
        yield BaselineItem.from_parent(self, name=NEW)


NEW = "no new tensors"


class BaselineChangedError(Exception):
    """A tensor has changed."""


class BaselineItem(pytest.Item):
    """One tensor of a frozen run; a test's name shows the tensor's, escaped."""

    def __init__(self, name: str, parent: pytest.Collector, tensor: str = "") -> None:
        super().__init__(name, parent)
        self._tensor = tensor

    def runtest(self) -> None:
        """Fail if the tensor has changed."""
        assert isinstance(self.parent, BaselineFile)
        report = self.parent.report
        if self.name == NEW:
            changed = ", ".join(f"'{escape_unprintable(c.tensor)}'" for c in report.new)
            change = f"{changed} is new" if changed else None
        else:
            change = report.change_of(self._tensor)
        if change is not None:
            raise BaselineChangedError("; ".join([f"'{self.name}': {change}", *map(escape_unprintable, report.files)]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # noqa: ARG002
        """Return one line: the change, or the reason why the run could not be repeated."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the test by the baseline and the tensor."""
        return self.path, None, f"{escape_unprintable(self.path.name)}: {self.name}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> BaselineFile | None:
    """Collect the files of frozen runs."""
    if file_path.name.endswith(SUFFIX):
        return BaselineFile.from_parent(parent, path=file_path)
    return None
