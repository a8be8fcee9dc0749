"""vww01: COCO's images at 96 x 96.

Source: mlcommons/tiny, benchmark/training/visual_wake_words/generate_y_labels.py, which names SiliconLabs'
buildPersonDetectionDatabase.py (platform_ml_models): `resize(image, (96, 96), anti_aliasing=True)` of scikit-image, 255
times, cut off.
"""

from __future__ import annotations

import io
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.datasets.archive import Originals
from tflq.sampling.described.audio import load_scipy
from tflq.sampling.described.images import open_image

_SIDE = 96


def _convert(name: str, content: bytes) -> bytes:
    return shrunk(np.asarray(open_image(name, io.BytesIO(content)), np.uint8)).tobytes()


ORIGINALS = Originals(
    "image", "val2017.zip, or the folder of its images", ".bin", lambda name: PurePosixPath(name).stem, _convert
)
"""Images of val2017.zip or its folder; Pillow and scipy convert X.jpg to X.bin, uint8[96, 96, 3]."""


def shrunk(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image [H, W, 3] at 96 x 96, as scikit-image 0.19 and later resize.

    real = image / 255 in float64; a Gaussian of sigma (side / 96 - 1) / 2 if that is above 0; linear interpolation
    between pixels' centers, mirrored at the edges; values clipped to the range of the image; 255 * real, truncated.
    """
    ndimage = load_scipy().ndimage
    real = image * np.float64(1 / 255)
    factors = np.array(image.shape) / (_SIDE, _SIDE, image.shape[2])
    smooth = ndimage.gaussian_filter(real, np.maximum(0, (factors - 1) / 2), mode="mirror")
    small = ndimage.zoom(smooth, [1 / factor for factor in factors], order=1, mode="mirror", grid_mode=True)
    small = np.clip(small, real.min(), real.max())
    pixels: NDArray[np.uint8] = (255 * small).astype(np.uint8)
    return pixels
