"""Gets published files: a copy that is there already, or a download; nothing is kept that fails its checksum."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tflq.errors import FormatError, InputError, OutputError
from tflq.files import write_bytes

Outcome = Literal["already there", "copied", "downloaded"]

_TIMEOUT_S = 30.0
_BLOCK_BYTES = 1 << 16
_MOST_BYTES = 128 << 20
"""Of a file whose size is not known."""
_COPIES = "without a network, name a folder with copies in TFLQ_DATA"


@dataclass(frozen=True)
class Published:
    """A file that others publish.

    Attributes:
        task: of MLPerf Tiny, as mlcommons' folders or EnergyRunner call it.
        name: of the file.
        folder: below the base address.
        size_bytes: its size; None where that is not known.
        checksum: SHA-256 in hexadecimal; of 40 digits the number that git gives the file.
        places: where a copy may lie below the folder that TFLQ_DATA names.
    """

    task: str
    name: str
    folder: str
    size_bytes: int | None
    checksum: str
    places: tuple[str, ...]


def fetch(
    file: Published,
    folder: Path,
    base_url: str,
    progress: Callable[[int], object] = lambda _: None,
    *,
    offline: str = _COPIES,
) -> Outcome:
    """Put one file into a folder.

    A file of that name is kept if its checksum is right, and never overwritten if it is wrong. Copies below the folder
    that the environment variable TFLQ_DATA names are used before the network.

    Args:
        file: which one.
        folder: where to; it is made where it is missing.
        base_url: the folder that holds the file's folder.
        progress: called with the number of bytes just received.
        offline: what to do without a network, for the message.

    Raises:
        FormatError: a file, here or there, has the wrong checksum, or the transfer was cut.
        InputError: the server cannot be reached or refuses.
        OutputError: the folder cannot be written.
    """
    target = folder / file.name
    if target.exists():
        if not _is_right(target, file):
            raise FormatError(
                f"{target}: is there already, but is not {file.name} of MLPerf Tiny ({_kind(file)} "
                f"{_digest(target, file)}, expected {file.checksum}); move it away"
            )
        return "already there"
    copy = next((path for path in copies(file.places) if path.is_file() and _is_right(path, file)), None)
    data = copy.read_bytes() if copy is not None else _downloaded(file, base_url, progress, offline)
    make_folder(folder)
    write_bytes(target, data)
    return "downloaded" if copy is None else "copied"


def make_folder(folder: Path) -> None:
    """Make a folder, where it is missing.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror or error}; choose another --dir") from None


def copies(places: tuple[str, ...]) -> list[Path]:
    """Return what is there of some places below the folder that TFLQ_DATA names."""
    root = os.environ.get("TFLQ_DATA")
    return [path for place in places if (path := Path(root, place)).exists()] if root else []


def download(url: str, most: int, progress: Callable[[int], object] = lambda _: None, offline: str = _COPIES) -> bytes:
    """Return what an address gives: at most one byte more than `most`; what was cut comes back short.

    Raises:
        InputError: the server cannot be reached or refuses.
    """
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{url}: http or https is needed")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:
            return _receive(reply, most, progress)
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: the server answers {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be downloaded: {reason}; {offline}") from None


def _downloaded(file: Published, base_url: str, progress: Callable[[int], object], offline: str) -> bytes:
    url = f"{base_url.rstrip('/')}/{file.folder}/{file.name}"
    data = download(url, file.size_bytes or _MOST_BYTES, progress, offline)
    if file.size_bytes is not None and len(data) < file.size_bytes:
        raise FormatError(f"{url}: the transfer was cut, {len(data)} of {file.size_bytes} bytes came; try again")
    found = _digest_of(data, file)
    if found != file.checksum:
        raise FormatError(f"{url}: wrong content, {_kind(file)} {found}, expected {file.checksum}; nothing was kept")
    return data


def _is_right(path: Path, file: Published) -> bool:
    fits = path.is_file() and file.size_bytes in (None, path.stat().st_size)
    return fits and _digest(path, file) == file.checksum


def _digest(path: Path, file: Published) -> str:
    return _digest_of(path.read_bytes(), file) if path.is_file() else "none: no plain file"


def _digest_of(data: bytes, file: Published) -> str:
    if len(file.checksum) == 64:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _kind(file: Published) -> str:
    return "SHA-256" if len(file.checksum) == 64 else "git's number"


def _receive(reply: http.client.HTTPResponse, size: int, progress: Callable[[int], object]) -> bytes:
    """Read at most one byte more than expected; what was cut comes back short."""
    data = bytearray()
    try:
        while len(data) <= size:
            block = reply.read(min(_BLOCK_BYTES, size + 1 - len(data)))
            if not block:
                break
            data += block
            progress(len(block))
    except http.client.IncompleteRead as error:
        data += error.partial
    return bytes(data)
