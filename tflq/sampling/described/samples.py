"""The files of a description as one array in an input's own encoding, kept on disk: memory does not grow with them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError
from tflq.graph import Array, Tensor
from tflq.sampling.described.audio import load_clip
from tflq.sampling.described.description import Audio, Description, Images
from tflq.sampling.described.images import load_image
from tflq.sampling.encoding import quantize_real


def described_array(description: Description, tensor: Tensor) -> tuple[Array, int]:
    """Return the samples of a description for one input of a model.

    Each file's numbers are quantized as TFLite's QUANTIZE does and written to a temporary file that has no name and
    lives as long as the array.

    Returns:
        dtype[S, *shape], and the number of values that were clipped.

    Raises:
        InputError: a file that cannot be read, or numbers that do not fit the input; the file is named.
        MissingExtraError: the package that reads the files is not installed.
    """
    kept = tempfile.TemporaryFile()  # noqa: SIM115 - the array keeps it
    clipped = 0
    for file in description.files:
        codes, outside = quantize_real(_fitted(file, description.preparation, tensor), tensor, str(file))
        clipped += outside
        kept.write(np.ascontiguousarray(codes).tobytes())
    kept.flush()
    shape = (len(description.files), *tensor.shape)
    return np.memmap(kept, tensor.dtype.storage, "r+", 0, shape), clipped


def _fitted(path: Path, how: Images | Audio, tensor: Tensor) -> NDArray[np.float32]:
    """Return one file's numbers in the shape of the input: the same axes, but for axes of size 1."""
    sample = load_image(path, how) if isinstance(how, Images) else load_clip(path, how)
    if [n for n in sample.shape if n != 1] != [n for n in tensor.shape if n != 1]:
        raise InputError(
            f"{path}: gives {'x'.join(map(str, sample.shape))} numbers, input '{tensor.name}' takes "
            f"{'x'.join(map(str, tensor.shape))}; change the description"
        )
    return sample.reshape(tensor.shape)
