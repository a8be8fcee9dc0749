"""What every result of a use case can do: JSON, and where they make sense a page and a table."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tflq.errors import MissingExtraError
from tflq.quoting import Json, json_text

if TYPE_CHECKING:
    import pandas as pd

    from tflq.api.run_record import RunRecord
    from tflq.benchmarks.significance import Paired
    from tflq.report import Page


class Result(ABC):
    """What a use case found."""

    @abstractmethod
    def report(self) -> Mapping[str, Json]:
        """Return the facts of `to_dict`, as they come: with tuples, and numbers that JSON lacks."""

    def to_dict(self) -> dict[str, Json]:
        """Return what --json prints: JSON's own types; numbers that it lacks are "nan", "inf" and "-inf"."""
        return {key: plain(value) for key, value in self.report().items()}


@dataclass(frozen=True)
class PageResult(Result):
    """A result that is a page as well: what --report writes, and what a notebook shows.

    Attributes:
        run: what it is the result of, for the page; None where nothing was recorded.
    """

    run: RunRecord | None = field(default=None, kw_only=True, repr=False, compare=False)

    def to_dict(self) -> dict[str, Json]:
        """Return what --json prints: the facts, and under "run" what was run, on which files, with which settings."""
        found = super().to_dict()
        return found if self.run is None else {**found, "run": self.run.facts().report()}

    @abstractmethod
    def page(self) -> Page:
        """Return what stands on the page."""

    def write_report(self, path: str | Path) -> None:
        """Write the page as HTML.

        Raises:
            MissingExtraError: jinja2 is not installed.
            OutputError: the file cannot be written.
        """
        from tflq.files import write_bytes

        write_bytes(Path(path), self._html())

    def _repr_html_(self) -> str | None:
        """Return the page for a notebook; None without jinja2, where it shows the plain text."""
        try:
            return self._html().decode("utf-8")
        except MissingExtraError:
            return None

    def _html(self) -> bytes:
        from tflq.report import render
        from tflq.report.what_was_run import with_figures, with_run

        page = with_figures(self.page(), json_text(self.to_dict(), indent=2))
        return render(page if self.run is None else with_run(page, self.run.facts()))


class TableResult(Result):
    """A result whose point is a table."""

    @abstractmethod
    def rows(self) -> Sequence[Mapping[str, object]]:
        """Return the rows by column."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the table.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("to_pandas needs pandas: pip install 'tflq[pandas]'") from None
        return pd.DataFrame([dict(row) for row in self.rows()])


def paired_report(found: Paired, against: str) -> dict[str, Json]:
    """Return two settings on the same samples, of which the second one is called `against`."""
    return {"against": against, **picked(found, "gained", "lost", "p_value", "is_noise")}


def picked(source: object, *names: str) -> dict[str, Json]:
    """Return the attributes of these names: a row, or a part of a report."""
    return {name: getattr(source, name) for name in names}


def plain(value: Json) -> Json:
    """Return a value in JSON's own types, see `Result.to_dict`."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
