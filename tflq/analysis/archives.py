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
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            if array.dtype.hasobject:
                raise UnsupportedError(
                    f"{path}: tensor '{name}' holds strings or shapes that differ by sample; .npz cannot hold them"
                )
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _NO_TIME), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
    write_bytes(path, buffer.getbuffer())
