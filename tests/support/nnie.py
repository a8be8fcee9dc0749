"""Graphs quantized for NNIE, and OpenCV as the reader of Caffe files that nobody here wrote."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.nnie import NNIE
from tflq.converters.settings import parse_settings
from tflq.graph import Array, Graph, Model
from tflq.interpreter.kernels.nnie.logarithm import Scheme, clipping_of


def calibrated(graph: Graph, data: Sequence[Array]) -> Graph:
    """Calibrate a graph by extrema."""
    return calibrate(graph, list(data), StatisticsOptions("extrema", keep_samples=len(data[0])))


def quantized(graph: Graph, data: Sequence[Array], sets: Sequence[str] = (), layers: Sequence[str] = ()) -> Graph:
    """Calibrate a graph by extrema and quantize it."""
    return NNIE.quantize(calibrated(graph, data), parse_settings(NNIE.settings, sets, layers))


def package(
    graph: Graph, data: Sequence[Array], sets: Sequence[str] = (), layers: Sequence[str] = ()
) -> Mapping[str, bytes]:
    """Return the files of a graph, named "net"."""
    return NNIE.emit(quantized(graph, data, sets, layers), Model([graph], source="folder/net.tflite"))


def clipping_grid(scheme: Scheme) -> NDArray[np.float32]:
    """Return the clipping values of all z, ascending: float32[2 * zmax + 1]."""
    every = range(-scheme.largest_z, scheme.largest_z + 1)
    return np.array([clipping_of(z, scheme) for z in every], np.float32)


def from_true_form(stored: NDArray[np.uint8]) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    """Return sign and code q of 8-bit quantized values: the inverse of `true_form`."""
    sign = np.where(stored == 0x80, 0, np.where(stored & 0x80, -1, 1)).astype(np.int8)
    return sign, (stored & 0x7F).astype(np.int16)


def run_in_opencv(
    files: Mapping[str, bytes], inputs: Sequence[NDArray[np.float32]], output: str | None = None
) -> Array:
    """Run samples through OpenCV's Caffe importer: real numbers [S, *shape], channels last in and out."""
    if importlib.util.find_spec("cv2") is None:
        pytest.skip("opencv-python-headless is not installed: nobody reads the Caffe files (tflq[caffe] has it)")
    cv2 = importlib.import_module("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip(f"OpenCV {cv2.__version__} has no Caffe importer: 4.x has (tflq[caffe])")
    _register_tile()
    text, weights = (next(v for k, v in files.items() if k.endswith(end)) for end in (".prototxt", ".caffemodel"))
    net = cv2.dnn.readNetFromCaffe(np.frombuffer(text, np.uint8), np.frombuffer(weights, np.uint8))
    found = []
    for s in range(len(inputs[0])):
        for number, array in enumerate(inputs):
            x = array[s]
            x = x[:, None] if x.ndim == 3 else x
            x = x.reshape(*x.shape, 1, 1) if x.ndim == 2 else x.transpose(0, 3, 1, 2)
            net.setInput(np.ascontiguousarray(x), "data" if len(inputs) == 1 else f"data{number}")
        y = net.forward(output) if output else net.forward()
        found.append(y.transpose(0, 2, 3, 1).copy() if y.ndim == 4 else y.copy())
    return np.stack(found)


class _Tile:
    """Caffe's Tile for OpenCV, which lacks it: repeats an axis of [N, C, H, W]."""

    def __init__(self, params: Mapping[str, int], blobs: object) -> None:
        self.axis, self.tiles = params["axis"], params["tiles"]

    def getMemoryShapes(self, inputs: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[n * (self.tiles if a == self.axis else 1) for a, n in enumerate(inputs[0])]]

    def forward(self, inputs: Sequence[Array]) -> list[Array]:
        return [np.concatenate([inputs[0]] * self.tiles, self.axis)]


@cache
def _register_tile() -> None:
    importlib.import_module("cv2").dnn_registerLayer("Tile", _Tile)
