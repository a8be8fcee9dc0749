"""Small networks as TPU-MLIR lowered and simulated them: what was recorded, and tflq's layers beside it.

The networks are those of float_networks.py and tpu_mlir_variants.py, and each once more with every tensor inside as an
output: what one layer alone may read has another reader then. Many of them are parts of one graph, since most of the
tool's time is its start.

    TFLQ_DATA=... TFLQ_PEERS=... PYTHONPATH=.:scripts python -m tests.support.tpu_mlir_recorded [PATTERN ...]

runs the tool on the networks that are new and extends tests/data/tpu_mlir_networks.json.xz: the calibration table that
tflq wrote for it, and of each tensor of its lowered graph type, scale, zero point, multiplier and shift, with the CRC
of integers and the mean magnitude of floating-point values. Networks that tflq or the tool refuses are left out.
"""

from __future__ import annotations

import json
import lzma
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.float_networks import NETWORKS, measured
from tests.support.tpu_mlir_variants import VARIANTS
from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.emit import integers_of
from tflq.graph import Array, DType, Graph, Tensor
from tflq.interpreter import Engine, lower

FILE = ROOT / "tests" / "data" / "tpu_mlir_networks.json.xz"
MODES: dict[str, tuple[list[str], list[str]]] = {
    "sym": ([], []),
    "asym": (["asymmetric=true"], []),
    "half": ([], ["*:mode=F16"]),
}
"""Settings of the whole network, and of layers."""
OPENED = "opened: "
TYPES = {"i8": "int8", "u8": "uint8", "f16": "float16", "f32": "float32"}
REAL_SHARE = 2e-3
"""Of the mean magnitude of reals: sums in another order, and another C library."""


@cache
def network(name: str) -> tuple[Graph, list[Array]]:
    """A network with ranges, and one sample of each input."""
    plain = name.removeprefix(OPENED)
    graph, inputs, _ = measured(NETWORKS.get(plain) or VARIANTS[plain])
    if name != plain:
        graph.outputs = tuple(dict.fromkeys((*graph.outputs, *(t for n in graph.nodes for t in n.outputs))))
    return graph, [x[:1] for x in inputs]


def together(names: Sequence[str]) -> tuple[Graph, list[Array]]:
    """Networks beside each other in one graph."""
    whole, samples = Graph([], [], (), (), "together"), list[Array]()
    for number, name in enumerate(names):
        graph, inputs = network(name)
        base, prefix = len(whole.tensors), f"n{number}_"
        whole.tensors += [replace(t, name=prefix + t.name) for t in graph.tensors]
        for node in graph.nodes:
            given, made = (tuple(t + base if t >= 0 else t for t in ts) for ts in (node.inputs, node.outputs))
            whole.nodes.append(replace(node, inputs=given, outputs=made, name=f"{prefix}{node.name}"))
        whole.inputs += tuple(t + base for t in graph.inputs)
        whole.outputs += tuple(t + base for t in graph.outputs)
        samples += inputs
    return whole, samples


def lowered(graph: Graph, mode: str, table: Path | None = None) -> Graph:
    sets = [*MODES[mode][0], *([] if table is None else [f"calibration_table={table}"])]
    return lower(TPU_MLIR.quantize(graph, parse_settings(TPU_MLIR.settings, sets, MODES[mode][1])), TPU_MLIR.arithmetic)


def problems(graph: Graph, inputs: list[Array], layers: list[dict[str, Any]]) -> list[str]:
    """What of the tool's tensors tflq has otherwise."""
    ours = {graph.tensors[t].name: (t, node) for node in graph.nodes for t in node.outputs}
    values = Engine(graph).run(inputs, [t for t, _ in ours.values()])
    found = []
    for layer in layers:
        name = layer["name"]
        plain = name.replace("_Softmax__softmax", "_Softmax")
        key = next((k for k in (name, plain, plain.removesuffix("_reshape")) if k in ours), None)
        if key is None and layer["is_move"]:
            continue
        if key is None:
            found.append(f"{name}: tflq has no such tensor")
            continue
        t, node = ours[key]
        words = _type_problem(graph.tensors[t], integers_of(node), layer) or _value_problem(values[t], layer)
        if words:
            found.append(f"{name}: {words}")
    return found


def _type_problem(tensor: Tensor, integers: dict[str, Any], layer: dict[str, Any]) -> str:
    # docs/rules/tpu_mlir_operators.md#elementwise-operators: some layers that the tool calls float16 are not rounded
    if tensor.dtype.value != TYPES[layer["type"]] and not (layer.get("unrounded") and tensor.dtype is DType.FLOAT32):
        return f"type {tensor.dtype.value}, the tool's is {layer['type']}"
    if "scale" in layer:
        pair = float(tensor.affine.scale[0]), int(tensor.affine.zero_point[0])
        if not np.isclose(pair[0], layer["scale"], rtol=1e-6, atol=0) or pair[1] != layer["zero_point"]:
            return f"type {pair}, the tool's {layer['scale'], layer['zero_point']}"
        if (tensor.affine.bits, tensor.affine.signed) != (8, layer["type"] == "i8"):
            return f"{tensor.affine.bits} bits, signed {tensor.affine.signed}"
    for key, number in integers.items():
        wanted = layer.get(key, layer.get(f"{key}s"))
        if wanted is not None and not np.array_equal(np.ravel(np.array(number)), np.ravel(wanted)):
            return f"{key} {number}, the tool's {wanted}"
    return ""


def _value_problem(value: Array, layer: dict[str, Any]) -> str:
    if list(value.shape[1:]) and int(np.prod(value.shape)) != layer["size"]:
        return f"{value.size} elements, the tool has {layer['size']}"
    if "crc" in layer:
        return "" if layer["crc"] in checksums(value) else "values"
    mean = float(np.abs(value.astype(np.float64)).mean())
    return "" if np.isclose(mean, layer["mean"], rtol=REAL_SHARE, atol=1e-6) else f"mean {mean}, not {layer['mean']}"


def checksums(value: Array) -> list[int]:
    """CRCs of integers [1, *shape] in the model's order and, of what has 3 and 4 axes, with channels first."""
    orders = [value]
    if value.ndim >= 4:
        orders.append(np.moveaxis(value, -1, 2))
    return [zlib.crc32(np.ascontiguousarray(order).tobytes()) for order in orders]


def recorded() -> list[dict[str, Any]]:
    """The groups of networks that were recorded."""
    groups: list[dict[str, Any]] = json.loads(lzma.decompress(FILE.read_bytes()))
    return groups


def main(patterns: Sequence[str]) -> int:
    """Record the networks that the file does not have yet and whose names match a pattern."""
    from tests.support.tpu_mlir_record import record

    groups = recorded() if FILE.exists() else []
    known = {name for group in groups for name in group["names"]}
    names = [name for name in (*NETWORKS, *VARIANTS) if any(fnmatch(name, pattern) for pattern in patterns)]
    missing = [name for name in (*names, *(OPENED + n for n in names)) if name not in known]
    FILE.write_bytes(lzma.compress(json.dumps([*groups, *record(missing)]).encode(), preset=9))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["*"]))
