"""Input and output files: one-line errors for unreadable files, and no partly written artifacts."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from tflq.errors import InputError, OutputError

_MAP_ABOVE_BYTES = 64 << 20

Content: TypeAlias = "bytes | bytearray | memoryview | BinaryIO"
"""Content of a file, or a file opened for reading bytes."""

Source: TypeAlias = "str | os.PathLike[str] | Content"
"""A file: its path, its content, or the file opened."""


def require_source(source: Source) -> Source:
    """Return a source.

    Raises:
        InputError: The type of the source is wrong.
    """
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(source, "read"):
        allowed = "a path, bytes, or a file opened for reading bytes"
        raise InputError(f"source is {type(source).__name__} {source!r}; allowed is {allowed}")
    return source


def content_of(source: Source) -> bytes | memoryview:
    """Return the content of a file, of its path, of bytes, or of an opened file from its current position.

    Raises:
        InputError: The source has another type, cannot be read, or is empty.
    """
    source = require_source(source)
    if isinstance(source, (str, os.PathLike)):
        return read_bytes(source)
    if isinstance(source, bytes):
        return source
    return memoryview(source).toreadonly() if isinstance(source, (bytearray, memoryview)) else _read_opened(source)


def name_of_source(source: Source) -> str:
    """Return the name of a file in messages: its path if it is known, else "model"."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "model"


def _read_opened(file: BinaryIO) -> bytes:
    name = name_of_source(file)
    try:
        data = file.read()
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: cannot be read: {error}; open it for reading bytes: open(path, 'rb')") from None
    if not isinstance(data, bytes):
        raise InputError(f"{name}: read() returned {type(data).__name__}; open it for reading bytes: open(path, 'rb')")
    if not data:
        raise InputError(f"{name}: the opened file is at its end (0 bytes)")
    return data


def read_bytes(path: str | os.PathLike[str]) -> bytes | memoryview:
    """Return a file's content; a large one is mapped into memory instead of copied.

    Raises:
        InputError: The file is missing, is a folder, cannot be read, or is empty.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > _MAP_ABOVE_BYTES:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            data = file.read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; {_advice(Path(path))}") from None
    if not data:
        raise InputError(f"{path}: the file is empty (0 bytes)")
    return data


def _advice(path: Path) -> str:
    """Return advice for an unreadable file."""
    if path.is_dir():
        is_saved = (path / "saved_model.pb").exists()
        hint = (
            "it is a SavedModel of TensorFlow; tf.lite.TFLiteConverter.from_saved_model(PATH).convert() returns the "
            "content of a .tflite"
        )
        hint = hint if is_saved else ""
        return hint or "name a file in it"
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    return "name a file that exists"


def require_file(path: str | os.PathLike[str]) -> None:
    """Check that a file exists.

    Raises:
        InputError: The file is missing, or is a folder.
    """
    if not os.path.isfile(path):
        what = "is a folder" if os.path.isdir(path) else "no such file"
        raise InputError(f"{path}: {what}; {_advice(Path(path))}")


def sha256_of(source: str | os.PathLike[str] | bytes) -> str:
    """Return the SHA-256 of bytes, of a file, or of all files below a folder, by name and content, in hexadecimal."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    digest, path = hashlib.sha256(), Path(source)
    if path.is_dir():
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            digest.update(file.relative_to(path).as_posix().encode() + b"\0" + bytes.fromhex(sha256_of(file)))
        return digest.hexdigest()
    try:
        with path.open("rb") as opened:
            while block := opened.read(_MAP_ABOVE_BYTES):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; name a file that exists") from None
    return digest.hexdigest()


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files below a folder, in bytes."""
    return sum(item.stat().st_size for item in ([path] if path.is_file() else path.rglob("*")) if item.is_file())


def named_paths(value: object) -> Iterator[Path]:
    """Yield the existing files and folders in an argument: PATH, NAME=PATH, PATH@TARGET, or several of them."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from named_paths(part)
    elif isinstance(value, (str, os.PathLike)) and os.fspath(value):
        text = os.fspath(value)
        parts = (text, text.partition("=")[2], text.rpartition("@")[0])
        yield from list(dict.fromkeys(path for path in map(Path, filter(None, parts)) if _exists(path)))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # not a valid path: too long, or with a zero byte
        return False


def write_bytes(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Write a file under a temporary name and rename it, so that it is complete or absent.

    Raises:
        OutputError: The folder is missing or cannot be written.
    """
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        missing = "" if target.parent.is_dir() else f"; the folder {target.parent} does not exist; create it first"
        raise OutputError(f"{target}: cannot be written: {error.strerror or error}{missing}") from None


@contextmanager
def output_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty folder to write into; its files move to `path` when the block ends without an error.

    An existing folder keeps its other files. After an error `path` is unchanged.

    Raises:
        OutputError: The folder cannot be created or written.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_dir():
            raise OutputError(f"{target}: is a file; the output must be a folder")
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror or error}") from None
    try:
        yield scratch
        _move(scratch, target)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _move(scratch: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    if not os.access(target, os.W_OK):
        raise OutputError(f"{target}: cannot be written: permission denied")
    for item in sorted(scratch.iterdir()):
        existing = target / item.name
        if existing.exists() and existing.is_dir() != item.is_dir():
            old, new = ("folder", "file") if existing.is_dir() else ("file", "folder")
            raise OutputError(f"{existing}: is a {old}; the output is a {new}. Remove or rename it")
    for item in sorted(scratch.iterdir()):
        destination = target / item.name
        if destination.is_dir() and item.is_dir():
            shutil.rmtree(destination)
        os.replace(item, destination)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_HEADS = (
    (b"\x93NUMPY", "a .npy file of numpy"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes .h5"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"RIFF", "a RIFF file, such as a WAV"),
    (b"LITERTLM", "a LiteRT-LM bundle; extract a .tflite section with the tools of LiteRT-LM"),
    (b"\x1f\x8b", "a file packed by gzip; unpack it"),
    (b"BZh", "a file packed by bzip2; unpack it"),
    (b"\xfd7zXZ\x00", "a file packed by xz; unpack it"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"%PDF", "a PDF"),
    (b"version https://git-lfs", "a pointer of Git LFS; fetch the file itself with `git lfs pull`"),
)
_ARCHIVES = (
    (b"data.pkl", "a PyTorch file"),
    (b"config.json", "a .keras file"),
    (b".npy", "an .npz file of numpy"),
    (b".tflite", "a bundle of .tflite files, as MediaPipe writes .task; unpack it and name one of them"),
)
"""Names of members that identify the kind of a zip archive."""
_ONNX_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2}
"""Fields of ONNX's ModelProto with their wire types (onnx.proto)."""
_HEAD_BYTES = 512


def recognize_content(content: bytes | memoryview) -> str:
    """Return the kind of a file's content, such as "an ONNX model"; empty if it is unknown."""
    head = bytes(content[:_HEAD_BYTES])
    for start, kind in _HEADS:
        if head.startswith(start):
            return kind
    if head[4:8] == b"TFL3":
        return "a .tflite model"
    if head.startswith(b"PK\x03\x04"):
        return next((kind for name, kind in _ARCHIVES if name in head), "a zip archive; unpack it")
    if _is_onnx(head):
        return "an ONNX model"
    return _text_kind(head)


def _text_kind(head: bytes) -> str:
    """Return the kind of a text; empty if it is not UTF-8 text."""
    try:
        text = head.decode("utf-8") if len(head) < _HEAD_BYTES else head[:-4].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return ""
    if not text.strip() or any(c < " " and c not in "\t\r\n\f" for c in text):
        return ""
    start = text.lstrip("\ufeff \t\r\n").lower()
    if start.startswith(("<!doctype html", "<html")):
        return "a page of HTML, as a server sends in place of a file; download the file itself"
    return "JSON" if start.startswith(("{", "[")) else "XML" if start.startswith("<?xml") else "text"


def _is_onnx(head: bytes) -> bool:
    """Return whether bytes are the first fields of a ModelProto: ir_version, then other fields of it."""
    place = 0
    seen: list[int] = []
    while place < len(head):
        tag, place = _varint(head, place)
        field, wire = tag >> 3, tag & 7
        if _ONNX_FIELDS.get(field) != wire or (not seen and field != 1):
            return False
        value, place = _varint(head, place)
        place += value if wire == 2 else 0
        seen.append(field)
    return len(seen) > 1


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a protobuf number and its end; the end of the data also ends it."""
    value = shift = 0
    while place < len(data):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, place
