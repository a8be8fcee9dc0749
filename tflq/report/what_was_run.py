"""The part of a page that tells two runs apart: what was called, on which files, with which settings, where, when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tflq import __version__
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

    @property
    def text(self) -> str:
        """Name, size, digest and remark."""
        remark = f"; {self.remark}" if self.remark else ""
        return f"{self.name}: {size(self.size_bytes)}, SHA-256 {self.sha256}{remark}"


@dataclass(frozen=True)
class Setting:
    """A setting that is not at its default."""

    name: str
    value: str
    default: str

    @property
    def text(self) -> str:
        """The value, with the default if there is one."""
        return f"{self.value} (default: {self.default})" if self.default else self.value


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
