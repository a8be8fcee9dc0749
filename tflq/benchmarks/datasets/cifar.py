"""ic01: CIFAR-10's test images that the labels name, pixel by pixel.

Source: mlcommons/tiny, benchmark/training/image_classification/perf_samples_loader.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.datasets.archive import read_members
from tflq.benchmarks.datasets.python_archive import bytes_of, read_values
from tflq.benchmarks.labels import Label
from tflq.errors import InputError

_BATCH = "test_batch"
_SHAPE = (3, 32, 32)


def build(sources: Sequence[Path], labels: Sequence[Label]) -> dict[str, bytes]:
    """Return each file of the labels: uint8[32, 32, 3] of the image of its name.

    Args:
        sources: cifar-10-python.tar.gz, or its folder.
        labels: X.bin is the image X.png.

    Raises:
        InputError: no test_batch of CIFAR-10, an image that it lacks, or one of another class.
    """
    batch = next((b for source in sources for _, b in read_members(source, lambda n: Path(n).name == _BATCH)), None)
    if batch is None:
        raise InputError(f"{sources[0]}: holds no {_BATCH}; name cifar-10-python.tar.gz, or its folder")
    names, classes, pixels = _content(sources[0], batch)
    places = {name.removesuffix("png"): n for n, name in enumerate(names)}
    files = {}
    for label in labels:
        n = places.get(label.file.removesuffix("bin"))
        if n is None:
            raise InputError(f"{sources[0]}: {_BATCH} has no image for {label.file}")
        if classes[n] != label.true_class:
            raise InputError(
                f"{sources[0]}: the image for {label.file} is of class {classes[n]}, not {label.true_class}"
            )
        files[label.file] = pixels[n].reshape(_SHAPE).transpose(1, 2, 0).tobytes()
    return files


def _content(source: Path, batch: bytes) -> tuple[list[str], list[int], NDArray[np.uint8]]:
    try:
        found = read_values(batch)
        if not isinstance(found, dict):
            raise ValueError(f"{type(found).__name__} where dict is expected")
        parts = {bytes_of(key): value for key, value in found.items()}
        names = [bytes_of(name).decode("utf-8") for name in parts[b"filenames"]]
        pixels = np.frombuffer(bytes_of(parts[b"data"]), np.uint8).reshape(len(names), int(np.prod(_SHAPE)))
        classes = [int(one) for one in parts[b"labels"]]
        if len(classes) != len(names):
            raise ValueError(f"{len(names)} names, {len(classes)} labels")
    except Exception as error:
        said = " ".join(f"{type(error).__name__} {error}".split())
        raise InputError(f"{source}: {_BATCH} is none of CIFAR-10's Python version: {said}") from None
    return names, classes, pixels
