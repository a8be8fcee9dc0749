"""The golden runs of TPU-MLIR beside what tflq makes of the same networks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tests.support.data import data_path
from tests.support.onnx_graph import read_onnx
from tflq.converters.onnx import translate
from tflq.converters.settings import parse_settings, read_options
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.moves import see_network
from tflq.converters.tpu_mlir.quantize import quantize_network
from tflq.converters.tpu_mlir.tables import CalibrationTable, parse_calibration_table
from tflq.graph import Array, Graph, Node
from tflq.interpreter import Engine, lower

MODES = ("sym", "asym")
CASES = [(model, mode) for model in ("mini", "ops", "ties") for mode in MODES]
_FILES = {"mini": "golden"}
"""Where files are called otherwise than the model."""


@dataclass(frozen=True)
class Golden:
    """One run of TPU-MLIR and of tflq.

    Attributes:
        tensors: TPU-MLIR's, by its names; NCHW.
        graph: ours, lowered.
        values: our computed tensors, by TPU-MLIR's names; NCHW.
        nodes: which of our nodes writes each of them.
    """

    tensors: dict[str, Array]
    graph: Graph
    values: dict[str, Array]
    nodes: dict[str, Node]

    def pairs(self) -> Iterator[tuple[str, Array, Array]]:
        """Yield name, TPU-MLIR's tensor and ours, for each tensor of TPU-MLIR."""
        for name, theirs in self.tensors.items():
            ours = self.values[our_name(name, self.values)]
            yield name, theirs, ours.reshape(theirs.shape)


def our_name(name: str, ours: dict[str, Any]) -> str:
    """Return what tflq calls a tensor of TPU-MLIR.

    tflq flattens by Reshape and has no reshapes round a softmax; a conversion for several readers is called after the
    first one, which need not be TPU-MLIR's first.
    """
    plain = name.replace("_Flatten", "_Reshape")
    plain = re.sub(r"_Softmax__softmax(_reshape)?", "_Softmax", plain)
    plain = re.sub(r"_Gemm_reshape$", "_Gemm", plain)
    if plain in ours:
        return plain
    source, suffix = re.fullmatch(r"(x|z_Conv)\w+(_\w+)", plain).groups()  # type: ignore[union-attr]
    (found,) = (other for other in ours if re.fullmatch(rf"{source}[a-z]+_.*{suffix}", other))
    return found


def table_for(model: str, mode: str) -> CalibrationTable:
    folder = data_path("golden", "tpu_mlir")
    name = f"ties_{mode}_cali" if model == "ties" else f"{model}_cali"
    return parse_calibration_table((folder / name).read_text(encoding="utf-8"))


def network(model: str) -> Graph:
    return read_onnx(data_path("golden", "tpu_mlir") / f"{model}.onnx")


def quantized(model: str, mode: str, *sets: str) -> Graph:
    """Return tflq's graph for a golden model and its own calibration table."""
    graph = network(model)
    settings = parse_settings(TPU_MLIR.settings, [f"asymmetric={str(mode == 'asym').lower()}", *sets])
    options = read_options(LayerOptions, graph, settings)
    written = translate(graph)
    # the golden networks flatten in the order (c, h, w): nothing is permuted
    written = replace(written, nodes=tuple(node for node in written.nodes if node.op_type != "Transpose"))
    return lower(quantize_network(see_network(graph, written), table_for(model, mode), options), "tpu_mlir")


@cache
def golden(model: str, mode: str) -> Golden:
    """Read a golden run and do it ourselves."""
    folder = data_path("golden", "tpu_mlir")
    with np.load(folder / f"{_FILES.get(model, model)}_{mode}_tensors.npz") as file:
        tensors = {key: file[key] for key in file.files}
    graph = quantized(model, mode)
    keep = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
    found = Engine(graph).run([tensors["x"].transpose(0, 2, 3, 1)[None]], keep)
    images = {t: _image(graph, t) for t in keep}
    values = {graph.tensors[t].name: _channels_first(found[t][0], images[t]) for t in keep}
    nodes = {graph.tensors[t].name: node for node in graph.nodes for t in node.outputs}
    return Golden(tensors, graph, values, nodes)


def golden_json(model: str, mode: str) -> dict[str, Any]:
    path = data_path("golden", "tpu_mlir") / f"{_FILES.get(model, model)}_{mode}_params.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def golden_constants(model: str, mode: str) -> dict[str, Array]:
    with np.load(data_path("golden", "tpu_mlir") / f"{model}_{mode}_constants.npz") as file:
        return {key: file[key] for key in file.files}


def _image(graph: Graph, t: int) -> tuple[int, ...] | None:
    """Return the shape of the image that a flattened tensor was."""
    writers = graph.producers()
    while t in writers:
        node = graph.nodes[writers[t]]
        source = graph.tensors[node.inputs[0]]
        if node.operator == "reshape":
            return source.shape
        if node.operator not in ("quantize", "dequantize"):
            return None
        t = node.inputs[0]
    return None


def _channels_first(value: Array, image: tuple[int, ...] | None) -> Array:
    if image is not None and value.ndim == 2:
        value = value.reshape(image)
    return value.transpose(0, 3, 1, 2) if value.ndim == 4 else value
