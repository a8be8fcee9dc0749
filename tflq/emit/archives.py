"""Arrays into .npz files."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping

import numpy as np

from tflq.errors import UnsupportedError
from tflq.files import write_bytes
from tflq.graph import Array

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can state: the same arrays give the same bytes


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, whole or not at all; numpy.load reads them.

    Raises:
        UnsupportedError: an array of strings, or one array for each sample.
        OutputError: the folder is missing or cannot be written.
    """
    write_bytes(path, npz_bytes(arrays, str(path)))


def npz_bytes(arrays: Mapping[str, Array], where: str = "archive") -> bytes:
    """Return the content of an .npz file; `where` names it in messages.

    Raises:
        UnsupportedError: an array of strings, or one array for each sample.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            if array.dtype.hasobject:
                raise UnsupportedError(
                    f"{where}: tensor '{name}' holds strings or shapes that differ by sample; .npz cannot hold them"
                )
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _NO_TIME), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array, order="C"), allow_pickle=False)
    return buffer.getvalue()
