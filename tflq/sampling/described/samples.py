"""The files of a description as one array in an input's own encoding, stored on disk to limit memory."""

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

    The values of each file are quantized as in TFLite's QUANTIZE and written to an unnamed temporary file, which exists
    as long as the array.

    Returns:
        Samples, dtype[S, *shape], and the number of clipped values.

    Raises:
        InputError: A file cannot be read, or its values do not fit the input; the message names the file.
        MissingExtraError: The package that reads the files is not installed.
    """
    kept = tempfile.TemporaryFile()  # noqa: SIM115 - the array keeps it
    clipped = 0
    for file in description.files:
        codes, outside = quantize_real(_load_sample(file, description.preparation, tensor), tensor, str(file))
        clipped += outside
        kept.write(np.ascontiguousarray(codes).tobytes())
    kept.flush()
    shape = (len(description.files), *tensor.shape)
    return np.memmap(kept, tensor.dtype.storage, "r+", 0, shape), clipped


def _load_sample(path: Path, how: Images | Audio, tensor: Tensor) -> NDArray[np.float32]:
    """Return one file's values in the shape of the input, which must be equal except for axes of size 1."""
    sample = load_image(path, how) if isinstance(how, Images) else load_clip(path, how)
    if [n for n in sample.shape if n != 1] != [n for n in tensor.shape if n != 1]:
        raise InputError(
            f"{path}: has {'x'.join(map(str, sample.shape))} values; input '{tensor.name}' needs "
            f"{'x'.join(map(str, tensor.shape))}. Change the description"
        )
    return sample.reshape(tensor.shape)
