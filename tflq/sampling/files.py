"""Arrays from files: .npy, .npz, raw .bin, and folders of .bin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from tflq.errors import InputError
from tflq.files import read_bytes, recognize_content, require_file
from tflq.graph import Array, Tensor

KINDS = (".npy", ".npz", ".bin")
_NAMED = 3
"""Number of missing files that a message names."""


def read_npy(path: str | os.PathLike[str]) -> Array:
    """Read one array; a file over a few megabytes is mapped, not copied.

    Raises:
        InputError: The file is missing, not .npy, truncated, or contains pickled objects.
    """
    require_file(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise _unreadable(path, ".npy", error) from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: is not a .npy file; name it .npz if it contains several arrays")
    return array


def read_npz(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read the arrays of an .npz by name.

    Raises:
        InputError: The file is missing, not .npz, truncated, contains pickled objects, or no array.
    """
    from zipfile import BadZipFile
    from zlib import error as zlib_error

    require_file(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if isinstance(archive, np.ndarray):
                raise InputError(f"{path}: is not an .npz file; name it .npy if it contains one array")
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, KeyError, BadZipFile, zlib_error) as error:
        raise _unreadable(path, ".npz", error) from None
    if not arrays:
        raise InputError(f"{path}: contains no array")
    return arrays


def read_raw(path: str | os.PathLike[str], tensor: Tensor) -> Array:
    """Read samples in the format of memory: little-endian, C order, one byte per element for types below a byte.

    Args:
        path: File of complete samples in sequence, or folder of such .bin files, in the order of their names.
        tensor: Input of the model; its dtype and shape define the samples.

    Returns:
        Samples, dtype[S, *shape].

    Raises:
        InputError: No file, or a file that does not contain complete samples.
    """
    if tensor.dtype.storage.kind == "O":
        raise InputError(
            f"{path}: input '{tensor.name}' has type {tensor.dtype.value}, which raw bytes cannot represent"
        )
    source = Path(path)
    if not source.is_dir():
        return _samples(source, read_bytes(source), tensor)
    files = sorted(source.glob("*.bin"))
    if not files:
        raise InputError(f"{path}: the folder contains no .bin file")
    return np.concatenate([_samples(file, read_bytes(file), tensor) for file in files])


def file_of_sample(path: str, tensor: Tensor, sample: int) -> str:
    """Return the file of a sample: the one in a folder of .bin files, else the path itself."""
    rest = sample
    for file in sorted(Path(path).glob("*.bin")) if os.path.isdir(path) else ():
        count = file.stat().st_size // max(1, tensor.size * tensor.dtype.storage.itemsize)
        if rest < count:
            return str(file)
        rest -= count
    return path


def read_exact(paths: Sequence[Path], shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Read files of one sample each, all of the same size: dtype[S, *shape].

    Raises:
        InputError: A file is missing (the first ones are named) or has another size.
    """
    require_files(paths)
    samples = np.empty((len(paths), *shape), dtype)
    for row, path in enumerate(paths):
        data = read_bytes(path)
        _require_size(path, len(data), shape, dtype)
        samples[row] = np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape)
    return samples


def require_samples(paths: Sequence[Path], shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    """Check that files of one sample each exist and have the correct size, without reading them.

    Raises:
        InputError: As for `read_exact`.
    """
    require_files(paths)
    for path in paths:
        _require_size(path, path.stat().st_size, shape, dtype)


def require_files(paths: Sequence[Path]) -> None:
    """Check that the files of one folder exist.

    Raises:
        InputError: Files are missing; the message has their number and the first names.
    """
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise InputError(
            f"{paths[0].parent}: {len(missing)} of {len(paths)} files are missing: {', '.join(missing[:_NAMED])}{more}"
        )


def _require_size(path: Path, length: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    size = prod(shape) * dtype.itemsize
    if not length:
        raise InputError(f"{path}: the file is empty (0 bytes); a sample has {size}")
    if length != size:
        raise InputError(f"{path}: has {length} bytes; a sample has {size} ({dtype} {'x'.join(map(str, shape))})")


def _samples(path: Path, data: bytes | memoryview, tensor: Tensor) -> Array:
    kind = tensor.dtype.storage
    size = tensor.size * kind.itemsize
    if size == 0 or len(data) % size:
        raise InputError(
            f"{path}: has {len(data)} bytes, which is not a multiple of the {size} bytes of one sample of input "
            f"'{tensor.name}' ({tensor.dtype.value} {'x'.join(map(str, tensor.shape))})"
        )
    values = np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False)
    return values.reshape(-1, *tensor.shape)


def _unreadable(path: str | os.PathLike[str], kind: str, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    with open(path, "rb") as file:
        kind_text = recognize_content(file.read(1 << 10))
    if kind_text and not kind_text.startswith(("a .npy", "an .npz")):
        writer = f"numpy.save{'z' if kind == '.npz' else ''}"
        return InputError(f"{path}: is {kind_text}, not a {kind} file; write one with {writer}")
    if any(words in str(error) for words in ("allow_pickle", "Object arrays", "Python objects")):
        return InputError(f"{path}: contains Python objects, which are not read; save plain numbers")
    return InputError(f"{path}: is not a {kind} file, or is truncated: {' '.join(str(error).split())}")


def read_class_file(path: str) -> Array:
    """Read classes from a file: .npy with integers [S], or .csv with the class as the last number of each row.

    Raises:
        InputError: Another kind of file, or a row without a class.
    """
    kind = Path(path).suffix.lower()
    if kind == ".npy":
        return read_npy(path)
    if kind != ".csv":
        raise InputError(f"{path}: labels must be a file .npy or .csv")
    rows = bytes(read_bytes(path)).decode("utf-8-sig", "replace").splitlines()
    classes = [row.split(",")[-1].strip() for row in rows if row.strip()]
    wrong = [n for n, text in enumerate(classes, 1) if not text.isdecimal()]
    if wrong:
        way_out = ". Remove the header row" if wrong == [1] else ""
        raise InputError(f"{path}: row {wrong[0]}: '{classes[wrong[0] - 1]}' is not a class, 0 or more{way_out}")
    return np.array(classes, np.int64)
