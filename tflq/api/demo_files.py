"""Files of the demo: the model inside the package, its test images, and the images with labels."""

from __future__ import annotations

import os

import numpy as np

from tflq.api.demo import DIGITS, Demo
from tflq.files import output_folder


def write_demo(demo: Demo, folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write the model, its test images as one array, and the images with labels as a folder for `--data`.

    Args:
        demo: Model and images, as `tflq.demo` returns them.
        folder: Output folder; created if missing.

    Returns:
        Names of the files and of the folder, relative to `folder`.

    Raises:
        OutputError: The folder cannot be written.
    """
    images = np.asarray(demo.data.samples.take(0, demo.data.samples.count)[0])
    names = [f"image_{number:03d}.bin" for number in range(len(images))]
    labels = [f"{name},{DIGITS},{label}\n" for name, label in zip(names, demo.data.labels, strict=True)]
    with output_folder(folder) as target:
        (target / "digits.tflite").write_bytes(demo.path.read_bytes())
        np.save(target / "images.npy", images, allow_pickle=False)
        (target / "digits").mkdir()
        (target / "digits" / "y_labels.csv").write_text("".join(labels), encoding="utf-8")
        for name, image in zip(names, images, strict=True):
            (target / "digits" / name).write_bytes(image.tobytes())
    return "digits.tflite", "images.npy", "digits"
