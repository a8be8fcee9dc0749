"""The part of a page that tells two runs apart: what was called, on which files, with which settings, where, when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from tflq import __version__
from tflq.report.page import Facts, Page, Prose, Record, Section
from tflq.units import size


@dataclass(frozen=True)
class FileRead:
    """A file, folder or array that went into a run.

    Attributes:
        use: what it was for: "model", "calibration samples".
        name: as it was given.
        size_bytes: of all files of a folder.
        sha256: of the content; of a folder, of the names and digests of its files.
        remark: such as that it was written again after the run; empty for none.
    """

    use: str
    name: str
    size_bytes: int
    sha256: str
    remark: str = ""


@dataclass(frozen=True)
class Setting:
    """A setting that is not at its default."""

    name: str
    value: str
    default: str


@dataclass(frozen=True)
class WhatWasRun:
    """One run.

    Attributes:
        command: the command line, or the call from Python.
        date: when it began, ISO 8601 with the offset from UTC.
        files: what was read.
        settings: those that differ from their defaults.
        environment: name -> value of what a result or its speed may depend on.
    """

    command: str
    date: str
    files: Sequence[FileRead]
    settings: Sequence[Setting]
    environment: Sequence[tuple[str, str]]

    def report(self) -> dict[str, str | list[dict[str, str | int]] | dict[str, str]]:
        """Return the same for --json."""
        return {
            "command": self.command,
            "tflq": __version__,
            "date": self.date,
            "files": [asdict(file) for file in self.files],
            "settings": [asdict(setting) for setting in self.settings],
            "environment": dict(self.environment),
        }


def with_run(page: Page, run: WhatWasRun) -> Page:
    """Return a page that says at its end what was run."""
    facts = Facts([("command", run.command), ("tflq", __version__), ("date", run.date)])
    settings = Facts([(s.name, f"{s.value} (default: {s.default})" if s.default else s.value) for s in run.settings])
    sections = [
        Section("What was run", [facts]),
        Section("Files that were read", [Facts([(file.use, _file(file)) for file in run.files])]),
        Section("Settings that differ from their defaults", [settings if run.settings else Prose(["None."])]),
        Section("Environment", [Facts(run.environment)]),
    ]
    return replace(page, sections=[*page.sections, *sections])


def with_figures(page: Page, report: str) -> Page:
    """Return a page that holds every figure of the result, as --json prints them."""
    folded = Record("as --json prints them", report)
    return replace(page, sections=[*page.sections, Section("Every figure", [folded])])


def _file(file: FileRead) -> str:
    remark = f"; {file.remark}" if file.remark else ""
    return f"{file.name}: {size(file.size_bytes)}, SHA-256 {file.sha256}{remark}"
