"""Results kept as they come: a file of JSON lines that only ever grows, so that an interrupted run goes on from there.

A checksum of graphs, arrays and settings: results that were kept belong to a problem only if it is the same.

Each line: {"problem": SHA-256, "trial": text, "samples": S, "right": n or null, "sqnr_db": number or text,
"refused": text}, and "score": number or text of a metric that is no share of right answers. Several problems can share
a file. A last line without its end was cut off by an interruption and counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from tflq.errors import FormatError, OutputError
from tflq.precision.trial import Result, Trial
from tflq.quoting import json_text


def digest_of(*values: object) -> str:
    """Return the SHA-256 of some values, as hexadecimal digits.

    Dataclasses count with the name of their type and all fields but `extra`, arrays with type, shape and bytes,
    mappings in the order of their keys' texts, everything else as Python writes it.
    """
    digest = hashlib.sha256()
    _add(digest, values)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, value: object) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype.str} {value.shape};".encode())
        digest.update(repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Enum):
        digest.update(f"{value};".encode())
    elif is_dataclass(value):
        digest.update(f"{type(value).__name__}(".encode())
        for field in fields(value):
            if field.name != "extra":
                digest.update(f"{field.name}=".encode())
                _add(digest, getattr(value, field.name))
        digest.update(b")")
    elif isinstance(value, Mapping):
        digest.update(b"{")
        for key in sorted(value, key=str):
            digest.update(f"{key}:".encode())
            _add(digest, value[key])
        digest.update(b"}")
    elif isinstance(value, (tuple, list)):
        digest.update(b"(")
        for item in value:
            _add(digest, item)
        digest.update(b")")
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())


class ResultsFile:
    """What is known of one problem, and where more of it is kept."""

    def __init__(self, path: Path | None, digest: str) -> None:
        """Read what there is.

        Args:
            path: the file; it is made with the first result. None to keep nothing.
            digest: of the problem.

        Raises:
            FormatError: a line of another form.
            OutputError: the file cannot be read.
        """
        self._path, self._digest = path, digest
        self._known: dict[str, Mapping[str, object]] = {}
        for number, line in enumerate(whole_lines(path) if path else (), 1):
            fields = _fields(f"{path}: line {number}", line)
            if fields["problem"] == digest:
                self._known[str(fields["trial"])] = fields

    def find(self, trial: Trial) -> Result | None:
        """Return the result that was kept for a trial."""
        fields = self._known.get(trial.key)
        if fields is None:
            return None
        right, score = fields["right"], fields.get("score")
        return Result(
            trial,
            int(str(fields["samples"])),
            None if right is None else int(str(right)),
            float(str(fields["sqnr_db"])),
            str(fields["refused"]),
            None if score is None else float(str(score)),
        )

    def add(self, result: Result) -> None:
        """Append a result; it is on its way to the disk when this returns.

        Raises:
            OutputError: the file cannot be written.
        """
        fields = {
            "problem": self._digest,
            "trial": result.trial.key,
            "samples": result.samples,
            "right": result.right,
            "sqnr_db": repr(result.sqnr_db),
            "refused": result.refused,
            **({} if result.score is None else {"score": repr(result.score)}),
        }
        self._known[result.trial.key] = fields
        if self._path is not None:
            append_line(self._path, f"{json_text(fields, None)}\n".encode())


def append_line(path: Path, line: bytes) -> None:
    """Write one line at the end, behind a whole one.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        with open(path, "ab+") as file:
            if file.tell() and not _ends_whole(path):
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
            file.write(line)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _ends_whole(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def whole_lines(path: Path) -> Sequence[bytes]:
    """Return the lines of a file, but for one that was cut off; none where there is no file.

    Raises:
        OutputError: the file cannot be read.
    """
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return content.split(b"\n")[:-1]


def _fields(where: str, line: bytes) -> Mapping[str, object]:
    try:
        found: object = json.loads(line)
        if isinstance(found, dict) and {"problem", "trial", "samples", "right", "sqnr_db", "refused"} <= found.keys():
            float(str(found["sqnr_db"])), float(str(found.get("score") or 0))
            int(str(found["samples"])), int(str(found["right"] or 0))
            return found
    except (ValueError, RecursionError):
        pass
    raise FormatError(f"{where}: is no result of a search; name another file with --results, or correct the line")
