"""Gets reference models: a copy that is there already, or a download; nothing is kept that fails its checksum."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tflq.benchmarks.reference_models import BASE_URL, ReferenceModel
from tflq.errors import FormatError, InputError, OutputError
from tflq.files import write_bytes

Outcome = Literal["already there", "copied", "downloaded"]

_TIMEOUT_S = 30.0
_BLOCK_BYTES = 1 << 16


def fetch(
    model: ReferenceModel, folder: Path, base_url: str = BASE_URL, progress: Callable[[int], object] = lambda _: None
) -> Outcome:
    """Put one model into a folder.

    A file of that name is kept if its checksum is right, and never overwritten if it is wrong. Copies below the folder
    that the environment variable TFLQ_DATA names (itself or its "models") are used before the network.

    Args:
        model: which one.
        folder: where to; it is made where it is missing.
        base_url: the folder that holds the tasks' folders.
        progress: called with the number of bytes just received.

    Raises:
        FormatError: a file, here or there, has the wrong checksum, or the transfer was cut.
        InputError: the server cannot be reached or refuses.
        OutputError: the folder cannot be written.
    """
    target = folder / model.name
    if target.exists():
        if not _is_right(target, model):
            raise FormatError(
                f"{target}: is there already, but is not {model.name} of MLPerf Tiny (SHA-256 {_digest(target)}, "
                f"expected {model.sha256}); move it away"
            )
        return "already there"
    copy = _local_copy(model)
    data = copy.read_bytes() if copy is not None else _download(model, base_url, progress)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror or error}; choose another --dir") from None
    write_bytes(target, data)
    return "downloaded" if copy is None else "copied"


def _local_copy(model: ReferenceModel) -> Path | None:
    root = os.environ.get("TFLQ_DATA")
    if not root:
        return None
    candidates = (Path(root, "models", model.name), Path(root, model.name))
    return next((path for path in candidates if path.is_file() and _is_right(path, model)), None)


def _is_right(path: Path, model: ReferenceModel) -> bool:
    return path.is_file() and path.stat().st_size == model.size_bytes and _digest(path) == model.sha256


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "none: no plain file"


def _download(model: ReferenceModel, base_url: str, progress: Callable[[int], object]) -> bytes:
    url = f"{base_url.rstrip('/')}/{model.path}"
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{url}: http or https is needed")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:
            data = _receive(reply, model.size_bytes, progress)
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: the server answers {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"{url}: cannot be downloaded: {reason}; without a network, name a folder with copies in TFLQ_DATA"
        ) from None
    if len(data) < model.size_bytes:
        raise FormatError(f"{url}: the transfer was cut, {len(data)} of {model.size_bytes} bytes came; try again")
    found = hashlib.sha256(data).hexdigest()
    if len(data) > model.size_bytes or found != model.sha256:
        raise FormatError(f"{url}: wrong content, SHA-256 {found}, expected {model.sha256}; nothing was kept")
    return data


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
