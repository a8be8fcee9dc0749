"""The golden files of Zhouyi: a float IR, and what the Compass Optimizer made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from tests.support.aipu_boxes import internal_values
from tests.support.data import data_path
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.calibration import StatisticsOptions
from tflq.converters.calibration.statistics import Statistics
from tflq.converters.calibration.strategies import bounds_of
from tflq.converters.settings import parse_settings
from tflq.graph import Array, Graph, Node, Operands, Range
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.real import NAME as REAL
from tflq.interpreter.kernels.aipu.real.rules import RealParams
from tflq.interpreter.registry import kernel
from tflq.schemas.aipu import Network, read_network

KWS = "kws_float32"
MODES = {
    "sym_pt": ["activations=symmetric", "weights=per_tensor"],
    "asym_pc": ["activations=asymmetric", "weights=per_channel"],
    "sym": ["activations=symmetric", "weights=per_channel"],
    "asym": ["activations=asymmetric", "weights=per_channel"],
}


# Where a layer with hidden ranges does not read the graph's inputs as they are.
_READ: dict[str, Callable[..., list[Array]]] = {
    "POW": lambda a: [np.abs(a), np.float32(1.7)],
    "POW2IN_B": lambda a, b: [np.abs(a) + np.float32(0.2), b],
}


@dataclass(frozen=True)
class Golden:
    """One case in one mode.

    Attributes:
        wanted: the vendor's quantized IR.
        found: ours.
        graph: ours, lowered.
        tensors: top of a layer -> the vendor's quantized values of each sample, [S, *shape].
        inputs: real numbers of each sample, in order of the graph's inputs.
    """

    wanted: Network
    found: Network
    graph: Graph
    tensors: dict[str, Array]
    inputs: list[Array]

    def run(self) -> dict[str, Array]:
        """Return our quantized values of every tensor that has golden ones."""
        kept = {t.name: i for i, t in enumerate(self.graph.tensors) if t.name in self.tensors}
        codes = [
            AIPU.encode(x, self.graph.tensors[t])
            if not self.graph.tensors[t].dtype.is_integer or self.graph.tensors[t].quantization is not None
            else x.astype(self.graph.tensors[t].dtype.storage)
            for x, t in zip(self.inputs, self.graph.inputs, strict=True)
        ]
        result = Engine(self.graph).run(codes, list(kept.values()))
        return {name: result[t] for name, t in kept.items()}


def read_ir(folder: Path, name: str) -> Network:
    """Read NAME.txt and NAME.bin."""
    return read_network((folder / f"{name}.txt").read_text(encoding="utf-8"), (folder / f"{name}.bin").read_bytes())


def with_ranges(graph: Graph, layers: list[dict[str, object]]) -> Graph:
    """Return the graph with the calibrated ranges of a layers.json."""
    ranged = graph.copy()
    places = {t.name: i for i, t in enumerate(graph.tensors)}
    for layer in layers:
        outs = layer["outs"]
        assert isinstance(outs, list)
        for out in outs:
            limits = [np.asarray(out[key], np.float32).reshape(-1)[:1] for key in ("fmin", "fmax")]
            if out["name"] in places:
                place = places[out["name"]]
                ranged.tensors[place] = replace(ranged.tensors[place], range=Range(*limits))
    return ranged


@cache
def golden(case: str, mode: str) -> Golden:
    """Quantize a case's float IR with the vendor's ranges; `case` is kws_float32 or a folder such as ops/RELU."""
    folder = data_path("golden", "aipu", *case.split("/"))
    name = "kws_ref_model_float32" if case == KWS else folder.name
    float_folder = folder / "float_ir" if case == KWS else folder
    layers = json.loads((folder / mode / "layers.json").read_text(encoding="utf-8"))
    graph = with_ranges(graph_of(read_ir(float_folder, name)), layers)
    for index, node in enumerate(graph.nodes):
        if node.intermediates:
            _give_internal_ranges(graph, index, _batches(folder, len(graph.inputs)))
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings, MODES[mode]))
    lowered = lower(quantized, AIPU.arithmetic)
    wanted = read_ir(folder / mode, f"{name}_o")
    with np.load(folder / mode / "golden.npz") as file:
        arrays = {key: file[key] for key in file.files}
    return Golden(wanted, network_of(lowered), lowered, _tensors(wanted, arrays), _inputs(wanted, arrays))


def _give_internal_ranges(graph: Graph, index: int, batches: list[list[Array]]) -> None:
    """Give a layer's intermediates the ranges of the vendor's calibration batches, by the Optimizer's own strategy."""
    node, operands, options = graph.nodes[index], graph.operands(index), StatisticsOptions("mean")
    statistics = [Statistics(options) for _ in node.intermediates or ()]
    for batch in batches:
        for one, values in zip(statistics, _internal_values(node, operands, batch), strict=True):
            one.update(np.asarray(values, np.float32))
    for t, one in zip(node.intermediates or (), statistics, strict=True):
        limits = (np.asarray([bound], np.float32) for bound in bounds_of(one, options))
        graph.tensors[t] = replace(graph.tensors[t], range=Range(*limits))


def _internal_values(node: Node, operands: Operands, batch: list[Array]) -> tuple[Array, ...]:
    if node.operator in ("detection_output", "proposal"):
        return internal_values(node, operands, batch)
    lowered = kernel(REAL, node.operator).lower(node, operands)
    assert isinstance(lowered, RealParams)
    return lowered.intermediate_values(*batch)


def _batches(folder: Path, inputs: int) -> list[list[Array]]:
    """Return the vendor's calibration batches, as the layer with hidden ranges reads them."""
    read = _READ.get(folder.name, lambda *x: list(x))
    with np.load(folder / "calibration.npz") as file:
        count = len(file.files) // inputs
        return [read(*(file[f"b{b}_in{i}"][None] for i in range(inputs))) for b in range(count)]


def _samples(arrays: dict[str, Array]) -> list[str]:
    """Return the prefixes of the samples: s0_, s1_; one empty prefix where samples lie along axis 0."""
    return [""] if "x" in arrays else ["s0_", "s1_"]


def _tensors(wanted: Network, arrays: dict[str, Array]) -> dict[str, Array]:
    found = {}
    for number, layer in enumerate(wanted.layers):
        for k, edge in enumerate(layer.tops):
            parts = [arrays[f"{s}quant_L{number:02d}_{layer.type}_{k}"] for s in _samples(arrays)]
            found[edge.name] = np.concatenate([p.reshape(-1, *edge.shape) for p in parts])
    return found


def _inputs(wanted: Network, arrays: dict[str, Array]) -> list[Array]:
    names = wanted.header["input_tensors"]
    assert isinstance(names, tuple)
    if "x" in arrays:
        return [arrays["x"][:, None]]
    shapes = {edge.name: edge.shape for layer in wanted.layers for edge in layer.tops}
    return [
        np.concatenate([arrays[f"s{s}_in{i}"].reshape(1, *shapes[str(name)]) for s in range(2)])
        for i, name in enumerate(names)
    ]
