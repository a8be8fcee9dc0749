"""Images by Pillow: cropped, resized, with the order of channels and the scale of the model's training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import InputError, MissingExtraError
from tflq.sampling.described.description import Images
from tflq.sampling.files import read_npy

if TYPE_CHECKING:
    from PIL.Image import Image


def load_image(path: Path, how: Images) -> Singles:
    """Return an image as float32[height, width, channels]: (value - mean) * scale.

    Raises:
        InputError: Pillow cannot read the image.
        MissingExtraError: Pillow is not installed.
    """
    image = open_image(path, path, "L" if how.channels == "gray" else "RGB")
    height, width = how.size
    from PIL.Image import Resampling

    resized = image.resize((width, height), Resampling[how.resample.upper()], taken_part(*image.size, how))
    values: Singles = np.asarray(resized, np.float32).reshape(height, width, -1)
    if how.channels == "bgr":
        values = values[..., ::-1]
    return (values - np.array(how.mean, np.float32)) * np.array(how.scale, np.float32)


def open_image(name: str | Path, file: Path | BinaryIO, mode: str | None = "RGB") -> Image:
    """Return an image in RGB, or in another mode of Pillow.

    Args:
        name: Name for messages.
        file: File to read.
        mode: Mode of the result; None for the file's mode.

    Raises:
        InputError: Pillow cannot read the image.
        MissingExtraError: Pillow is not installed.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtraError("images need Pillow: pip install 'tflq[image]'") from None
    try:
        with Image.open(file) as opened:
            converted: Image.Image = opened.convert(mode) if mode else opened.copy()
            return converted
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{name}: is not a readable image: {' '.join(str(error).split())}") from None


def nearest(path: Path, size: tuple[int, int], how: Images) -> Integers:
    """Return the classes of a mask's pixels, int64[height, width], cropped like images and resampled to nearest pixels.

    A .npy file contains integers [H, W]; an image contains palette indices or gray levels.

    Raises:
        InputError: The file is not a mask.
        MissingExtraError: Pillow is not installed.
    """
    classes = read_npy(path) if path.suffix == ".npy" else np.asarray(open_image(path, path, None))
    if classes.ndim != 2 or classes.dtype.kind not in "iub" or not classes.size:
        raise InputError(
            f"{path}: contains {classes.dtype} {list(classes.shape)}; a mask contains one integer per pixel, [H, W]: "
            "a .npy file, or an image with a palette or gray levels"
        )
    if classes.min() < 0 or classes.max() > 0xFFFF:
        raise InputError(f"{path}: its classes are {classes.min()}..{classes.max()}; allowed is 0..65535")
    from PIL import Image

    whole = Image.fromarray(classes.astype(np.int32))
    part = taken_part(*whole.size, how)
    return np.asarray(whole.resize(size[::-1], Image.Resampling.NEAREST, part), np.int64)


def taken_part(width: int, height: int, how: Images) -> tuple[float, float, float, float]:
    """Return the part of an image with that size that is resized: left, top, right, bottom."""
    if how.crop == "none":
        return 0, 0, width, height
    factor = min(height / how.size[0], width / how.size[1])
    part = (round(how.size[1] * factor), round(how.size[0] * factor))
    left, top = (width - part[0]) // 2, (height - part[1]) // 2
    return left, top, left + part[0], top + part[1]
