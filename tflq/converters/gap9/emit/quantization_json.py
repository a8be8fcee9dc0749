"""quantization.json: types of all tensors, integers of all operators, engines with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.converters.gap9.operators import FILTERS, layer_of
from tflq.graph import Affine, Array, Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.pooling import Reciprocal, RescaledSum
from tflq.interpreter.kernels.gap9.rounding import Stored
from tflq.interpreter.numerics.requantize import StepMaps
from tflq.interpreter.operands.checks import Reduction
from tflq.quoting import json_text
from tflq.schemas import Json

FORMAT, VERSION = "tflq gap9 quantization", 1
_LARGEST_INLINE = 4096
_EXECUTION_ONLY = (
    "prepared",
    "step_map",
    "table",
    "dtype",
    "dtypes",
    "output_dtype",
    "shape",
    "outside",
    "floor",
    "bounds",
    "counts",
    "taps",
    "keep_dims",
    "fraction_bits",
    "weights",
    "input_product",
    "recurrent_product",
)
"""Fields that tflq needs to run, or that stand in constants.npz."""
_PARTS = (Reciprocal, RescaledSum, Reduction, Stored)
"""Records whose fields stand in the file beside those of the record that holds them."""
_NOT_DIVIDED = ("sum", "reduce_max")
"""Operators whose integers do not tell how many elements become one."""


def quantization_json(graph: Graph, target: str, source: str, constants: Mapping[str, Array], notes: Json) -> bytes:
    """Return the file.

    Args:
        graph: lowered.
        target: name of the target.
        source: name of the model's file, without folders.
        constants: of `constants_of`; each node lists its keys.
        notes: what else the file says: about model.tflite and the hardware's memory.
    """
    generators = generators_of(graph)
    content: dict[str, Json] = {
        "format": FORMAT,
        "version": VERSION,
        "target": target,
        "source": source,
        "graph": graph.name,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "tensors": [_tensor(i, t) for i, t in enumerate(graph.tensors)],
        "nodes": [_node(graph, i, constants, generators) for i in range(len(graph.nodes))],
        "artefacts": notes,
    }
    return (json_text(content) + "\n").encode()


def _tensor(index: int, tensor: Tensor) -> Json:
    entry: dict[str, Json] = {
        "index": index,
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype.value,
        "constant": tensor.is_constant,
    }
    if isinstance(tensor.quantization, Affine):
        q = tensor.quantization
        entry["quantization"] = {
            "scale": [float(s) for s in q.scale],
            "scale_precision": q.scale.dtype.name,
            "zero_point": [int(z) for z in q.zero_point],
            "axis": q.axis,
            "bits": q.bits,
            "signed": q.signed,
            "narrow_range": q.narrow_range,
        }
    if tensor.range is not None:
        entry["range"] = [float(tensor.range.minimum.min()), float(tensor.range.maximum.max())]
        entry["range_precision"] = tensor.range.minimum.dtype.name
    return entry


def _node(graph: Graph, index: int, constants: Mapping[str, Array], generators: Mapping[str, Generator | str]) -> Json:
    node = graph.nodes[index]
    attributes, generator = node.attributes, generators[node.name]
    return {
        "index": index,
        "name": node.name,
        "operator": node.operator,
        "version": node.version,
        "attributes": {name: plain(value) for name, value in attributes.items()},
        "layer": layer_of(node),
        "fusion": attributes.text("fusion", "") or None,
        "engine": attributes.text("engine", "") or None,
        "reason": attributes.text("engine_reason", ""),
        "generator": None if isinstance(generator, str) else generator.to_dict(),
        "generator_reason": generator if isinstance(generator, str) else "",
        "inputs": list(node.inputs),
        "outputs": list(node.outputs),
        "constants": [key for key in constants if key.rpartition("/")[0] == node.name],
        "integers": _integers(node),
    }


def _integers(node: Node) -> Json:
    if node.operator in FILTERS:
        return _filter(node)
    found = plain(node.params)
    if isinstance(found, dict) and node.operator in _NOT_DIVIDED:
        found.pop("count")
    return found


def _filter(node: Node) -> Json:
    params: object = getattr(node.params, "filter", None)
    found = plain(params)
    assert isinstance(found, dict)
    rescaling = found.pop("rescaling")
    assert isinstance(rescaling, dict)
    entry: dict[str, Json] = {**found, **rescaling}
    entry["quantized_bias"], entry["bias"] = found["bias"], rescaling["bias"]
    prepared: object = getattr(node.params, "prepared", None)
    window: object = getattr(prepared, "window", None)
    if window is not None:
        entry["window"] = plain(window)
        entry["groups"] = plain(getattr(node.params, "groups", 1))
    return entry


def plain(value: object) -> Json:
    """Return a kernel's integers as JSON: dataclasses by field, arrays as lists, without what only serves to run."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist()) if value.size <= _LARGEST_INLINE else None
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if is_dataclass(value) and not isinstance(value, (type, StepMaps)):
        entry: dict[str, Json] = {}
        for name in (f.name for f in fields(value) if f.name not in _EXECUTION_ONLY):
            part: object = getattr(value, name)
            entry |= _entries(part) if isinstance(part, _PARTS) else {name: plain(part)}
        return entry
    return value if isinstance(value, (str, int, float, bool)) else None


def _entries(part: object) -> dict[str, Json]:
    found = plain(part)
    assert isinstance(found, dict)
    return found
