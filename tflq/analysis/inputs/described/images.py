"""Images by Pillow: cropped, resized, in the order of channels and on the scale that the model was trained with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.inputs.described.description import Images
from tflq.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = NDArray[np.float32]


def load_image(path: Path, how: Images) -> Floats:
    """Return an image as float32[height, width, channels]: (value - mean) * scale.

    Raises:
        InputError: no image that Pillow reads.
        MissingExtraError: Pillow is not installed.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtraError("images need Pillow: pip install 'tflq[image]'") from None
    try:
        with Image.open(path) as opened:
            image = opened.convert("L" if how.channels == "gray" else "RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: is no image that can be read: {' '.join(str(error).split())}") from None
    height, width = how.size
    resample = Image.Resampling[how.resample.upper()]
    resized = image.resize((width, height), resample, _crop(image, how))
    values: Floats = np.asarray(resized, np.float32).reshape(height, width, -1)
    if how.channels == "bgr":
        values = values[..., ::-1]
    return (values - np.array(how.mean, np.float32)) * np.array(how.scale, np.float32)


def _crop(image: Image, how: Images) -> tuple[float, float, float, float]:
    """Return the part of the image that is resized: left, top, right, bottom."""
    width, height = image.size
    if how.crop == "none":
        return 0, 0, width, height
    factor = min(height / how.size[0], width / how.size[1])
    part = (round(how.size[1] * factor), round(how.size[0] * factor))
    left, top = (width - part[0]) // 2, (height - part[1]) // 2
    return left, top, left + part[0], top + part[1]
