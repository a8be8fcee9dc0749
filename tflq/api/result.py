"""The base of all results: one verdict and a list of tables, rendered as text, page, JSON, CSV and pandas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tflq.errors import MissingExtraError, UsageError
from tflq.files import write_bytes
from tflq.quoting import Json, json_text, plain_json
from tflq.report import Column, Page, Table, Verdict, render

if TYPE_CHECKING:
    import pandas as pd

    from tflq.api.run_record import RunRecord
    from tflq.benchmarks.significance import Paired

SCHEMA = 1
"""Version of the keys in JSON; docs/guides/python.md lists them."""


@dataclass(frozen=True)
class Result(ABC):
    """The outcome of a use case.

    Attributes:
        run: The call with its files and settings; None if it was not recorded.
    """

    FACTS: ClassVar[Sequence[Column]] = ()
    """Single values: keys of JSON, and with a heading lines at the top of the page."""

    MAIN: ClassVar[str | None] = None
    """Name of the table that `rows`, CSV and pandas return by default; None for the first one."""

    run: RunRecord | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """The outcome in one sentence with its figure."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return type(self).__name__.removesuffix("Result").lower()

    @property
    def notes(self) -> Sequence[str]:
        """Sentences below the verdict."""
        return ()

    def tables(self) -> Sequence[Table]:
        """Return the tables; the first one with a name is that of CSV and pandas."""
        return ()

    @property
    def status(self) -> int:
        """Exit status of the command: 1 if the verdict is FAIL."""
        return int(self.verdict.word == "FAIL")

    def to_dict(self) -> dict[str, Json]:
        """Return the content of --json: schema, verdict, facts, and the rows of each table under its name."""
        facts = {fact.key: plain_json(fact.value(self)) for fact in self.FACTS if fact.key}
        tables = {table.name: table.records() for table in self.tables() if table.is_keyed and table.in_json}
        run = {} if self.run is None else {"run": self.run.facts().report()}
        return {"schema": SCHEMA, "verdict": self.verdict.to_dict(), **facts, **tables, **run}

    def table(self, name: str | None = None) -> Table:
        """Return the table of a name (default: the first one).

        Raises:
            UsageError: There is no such table.
        """
        name = name or self.MAIN
        tables = {table.name: table for table in self.tables() if table.is_keyed}
        if not tables or (name is not None and name not in tables):
            raise UsageError(f"table {name!r}: this result has {', '.join(tables) or 'no tables'}")
        return tables[name] if name is not None else next(iter(tables.values()))

    def rows(self, table: str | None = None) -> list[dict[str, Json]]:
        """Return the rows of a table by key, as in JSON (default: the first one)."""
        return self.table(table).records()

    def to_csv(self, table: str | None = None) -> str:
        """Return a table as CSV (default: the first one)."""
        return self.table(table).to_csv()

    def write_csv(self, path: str | Path, table: str | None = None) -> None:
        """Write a table as CSV (default: the first one).

        Raises:
            OutputError: The file cannot be written.
        """
        write_bytes(Path(path), self.to_csv(table).encode())

    def to_pandas(self, table: str | None = None) -> pd.DataFrame:
        """Return a table as a data frame (default: the first one).

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("to_pandas needs pandas: pip install 'tflq[pandas]'") from None
        return pd.DataFrame(self.table(table).flat_records())

    def page(self) -> Page:
        """Return the content for people."""
        facts = [(fact.heading, fact.cell(self)) for fact in self.FACTS if fact.head]
        shown = [(name, text) for name, text in facts if text]
        return Page(self.title, self.verdict, shown, self.notes, self.tables())

    def write_report(self, path: str | Path) -> None:
        """Write the page as HTML.

        Raises:
            MissingExtraError: jinja2 is not installed.
            OutputError: The file cannot be written.
        """
        write_bytes(Path(path), self._html())

    def _repr_html_(self) -> str | None:
        """Return the page for a notebook; None without jinja2, which shows the plain text."""
        try:
            return self._html().decode("utf-8")
        except MissingExtraError:
            return None

    def _html(self) -> bytes:
        run = None if self.run is None else self.run.facts()
        return render(replace(self.page(), run=run, figures=json_text(self.to_dict(), indent=2)))


def paired_report(found: Paired, against: str) -> dict[str, Json]:
    """Return two settings on the same samples, of which the second one is called `against`."""
    return {"against": against, **select_attributes(found, "gained", "lost", "p_value", "is_noise")}


def select_attributes(source: object, *names: str) -> dict[str, Json]:
    """Return the attributes of these names: a row, or a part of a report."""
    return {name: getattr(source, name) for name in names}
