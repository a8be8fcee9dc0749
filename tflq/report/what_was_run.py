"""Facts on a page that distinguish two runs: the call, its files and settings, the computer, the date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tflq import __version__
from tflq.units import size


@dataclass(frozen=True)
class FileRead:
    """A file, folder or array that a run used.

    Attributes:
        use: Purpose: "model", "calibration samples".
        name: Name in the user's notation.
        size_bytes: Size of the file, or of all files of a folder.
        sha256: SHA-256 of the content; for a folder, of the names and digests of its files.
        remark: Remark, such as a change of the file after the run; empty without one.
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
    """A setting with another value than its default."""

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
        command: Command line, or the call from Python.
        date: Start time, ISO 8601 with the offset from UTC.
        files: Input files.
        settings: Settings with other values than their defaults.
        environment: Name -> value of facts that can influence results or their speed.
    """

    command: str
    date: str
    files: Sequence[FileRead]
    settings: Sequence[Setting]
    environment: Sequence[tuple[str, str]]

    def report(self) -> dict[str, str | list[dict[str, str | int]] | dict[str, str]]:
        """Return the facts for --json."""
        return {
            "command": self.command,
            "tflq": __version__,
            "date": self.date,
            "files": [asdict(file) for file in self.files],
            "settings": [asdict(setting) for setting in self.settings],
            "environment": dict(self.environment),
        }
