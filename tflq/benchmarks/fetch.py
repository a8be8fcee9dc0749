"""Fetch published files: use an existing copy or download it; no file with a wrong checksum is kept."""

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
"""Largest download of a file with unknown size."""
_COPIES = "without a network, name a folder with copies in TFLQ_DATA"


@dataclass(frozen=True)
class Published:
    """A file published by a third party.

    Attributes:
        task: Task of MLPerf Tiny, as MLCommons' folders or EnergyRunner name it.
        name: Name of the file.
        folder: Folder below the base URL.
        size_bytes: Size of the file in bytes; None if unknown.
        checksum: SHA-256 in hexadecimal; with 40 digits git's object name of the file.
        places: Paths of possible copies below the folder in TFLQ_DATA.
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

    An existing file is kept if its checksum matches, and never overwritten if it does not. Copies below the folder in
    the environment variable TFLQ_DATA are used before the network.

    Args:
        file: File to fetch.
        folder: Output folder; created if missing.
        base_url: URL of the folder that contains the file's folder.
        progress: Called with the number of bytes just received.
        offline: Advice without a network, for the message.

    Raises:
        FormatError: An existing or downloaded file has the wrong checksum, or the transfer was interrupted.
        InputError: The server cannot be reached or refuses.
        OutputError: The folder cannot be written.
    """
    target = folder / file.name
    if target.exists():
        if not _is_right(target, file):
            raise FormatError(
                f"{target}: already exists, but is not {file.name} of MLPerf Tiny ({_kind(file)} "
                f"{_digest(target, file)}, expected {file.checksum}); move it away"
            )
        return "already there"
    copy = next((path for path in copies(file.places) if path.is_file() and _is_right(path, file)), None)
    data = copy.read_bytes() if copy is not None else _download_checked(file, base_url, progress, offline)
    make_folder(folder)
    write_bytes(target, data)
    return "downloaded" if copy is None else "copied"


def make_folder(folder: Path) -> None:
    """Create a folder unless it exists.

    Raises:
        OutputError: The folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {error.strerror or error}; choose another --dir") from None


def copies(places: tuple[str, ...]) -> list[Path]:
    """Return the existing ones of some paths below the folder in TFLQ_DATA."""
    root = os.environ.get("TFLQ_DATA")
    return [path for place in places if (path := Path(root, place)).exists()] if root else []


def download(url: str, most: int, progress: Callable[[int], object] = lambda _: None, offline: str = _COPIES) -> bytes:
    """Return the content of a URL, at most one byte more than `most`; an interrupted transfer returns less.

    Raises:
        InputError: The server cannot be reached or refuses.
    """
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{url}: needs http or https")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:
            return _receive(reply, most, progress)
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: the server returns {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be downloaded: {reason}; {offline}") from None


def _download_checked(file: Published, base_url: str, progress: Callable[[int], object], offline: str) -> bytes:
    url = f"{base_url.rstrip('/')}/{file.folder}/{file.name}"
    data = download(url, file.size_bytes or _MOST_BYTES, progress, offline)
    if file.size_bytes is not None and len(data) < file.size_bytes:
        raise FormatError(
            f"{url}: the transfer was interrupted after {len(data)} of {file.size_bytes} bytes; try again"
        )
    digest = _digest_of(data, file)
    if digest != file.checksum:
        raise FormatError(
            f"{url}: wrong content, {_kind(file)} {digest}, expected {file.checksum}; no file was written"
        )
    return data


def _is_right(path: Path, file: Published) -> bool:
    fits = path.is_file() and file.size_bytes in (None, path.stat().st_size)
    return fits and _digest(path, file) == file.checksum


def _digest(path: Path, file: Published) -> str:
    return _digest_of(path.read_bytes(), file) if path.is_file() else "none: not a plain file"


def _digest_of(data: bytes, file: Published) -> str:
    if len(file.checksum) == 64:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _kind(file: Published) -> str:
    return "SHA-256" if len(file.checksum) == 64 else "git's object name"


def _receive(reply: http.client.HTTPResponse, size: int, progress: Callable[[int], object]) -> bytes:
    """Read at most one byte more than expected; an interrupted transfer returns less."""
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
