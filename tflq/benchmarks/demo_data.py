"""The model and the test images inside the package (NOTICE names their source)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np

from tflq.analysis.inputs import GivenSamples
from tflq.analysis.inputs.files import read_npz
from tflq.benchmarks.accuracy import LabelledSamples
from tflq.graph import Graph

DIGITS = 10


def demo_model_path() -> Path:
    """Return the path of digits.tflite: an int8 convolutional network for 8 x 8 images of digits."""
    return Path(str(files("tflq") / "data" / "digits.tflite"))


def demo_samples(graph: Graph) -> LabelledSamples:
    """Return the 360 test images, none of which the model was trained on, in the encoding of the model's input."""
    arrays = read_npz(str(files("tflq") / "data" / "digits_test.npz"))
    tensor = graph.tensors[graph.inputs[0]]
    images = arrays["images"].reshape(-1, *tensor.shape)
    return LabelledSamples(GivenSamples([images]), arrays["labels"].astype(np.int64), DIGITS)
