"""TPU-MLIR's tensors against tflq's, layer by layer: each layer of tflq is run on the tool's own tensors.

A layer's difference is then its own, not that of what came before it. Types, scales, multipliers and shifts must be
equal, integers always, and reals too; only these are known differences, named in the row:

* a layer in float16: 1 unit in the last place, in at most 0.2 % of the layer (one element of a small one);
* a layer in float32: 1e-6 of the layer's largest magnitude;
* a tensor whose values leave its type in the tool's simulator (docs/internals/evidence/tpu_mlir.md), and the layers
that read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peers.campaign import Row, Verdict
from tflq.converters.tpu_mlir.emit import integers_of
from tflq.diagnosis.compare.isolated import constants_of, run_node
from tflq.graph import Array, DType, Graph, Node

TYPES = {"i8": DType.INT8, "u8": DType.UINT8, "i32": DType.INT32, "f16": DType.FLOAT16, "f32": DType.FLOAT32}
MOVES = ("tpu.Reshape", "tpu.Permute", "tpu.Cast", "tpu.Squeeze", "tpu.Unsqueeze")
"""Layers of the tool that need no counterpart: they only move or convert what another layer wrote."""
HALF_SHARE = 0.002
SINGLE_SHARE = 1e-6


@dataclass
class Comparison:
    """One network in one scheme.

    Attributes:
        graph: tflq's, lowered.
        inputs: real values [S, *shape].
        theirs: the tool's tensors by name.
        layers: the tool's lowered graph.
    """

    graph: Graph
    inputs: list[Array]
    theirs: dict[str, Array]
    layers: list[dict[str, Any]]
    checks: int = 0
    problems: list[str] = field(default_factory=list)
    close: list[str] = field(default_factory=list)

    def row(self, name: str, scheme: str) -> Row:
        """Compare all layers."""
        outputs = self._matched()
        values = constants_of(self.graph)
        values.update(zip(self.graph.inputs, self.inputs, strict=True))
        left = set[int]()
        for node in self.graph.nodes:
            for t, array in run_node(node, values).items():
                values[t] = np.broadcast_to(array, (len(self.inputs[0]), *array.shape[1:]))
                for layer, output in outputs.get(t, ()):
                    self._tensor(layer, output, t, values, node, left)
        words = "; ".join((self.problems or self.close)[:3])
        verdict = Verdict.DIFFERS if self.problems else Verdict.KNOWN if self.close else Verdict.EQUAL
        return Row(name, scheme, verdict, self.checks, words)

    def _matched(self) -> dict[int, list[tuple[dict[str, Any], dict[str, Any]]]]:
        """Tensor of tflq -> the tool's layers and outputs that are the same; the last of them feeds what follows."""
        ours = {self.graph.tensors[t].name: t for node in self.graph.nodes for t in node.outputs}
        found: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        for layer in self.layers:
            for output in () if layer["op"].startswith("top.") else layer["outputs"]:
                key = our_name(output["name"], ours)
                if key is not None and output["name"] in self.theirs:
                    found.setdefault(ours[key], []).append((layer, output))
                elif layer["op"] not in MOVES and not output["name"].endswith(("_i32", "_slice")):  # parts of a layer
                    self.problems.append(f"tflq has no {output['name']} ({layer['op']})")
        return found

    def _tensor(
        self,
        layer: dict[str, Any],
        output: dict[str, Any],
        t: int,
        values: dict[int, Array],
        node: Node,
        left: set[int],
    ) -> None:
        """One tensor's type, scale, integers and values; the tool's values take the place of tflq's."""
        tensor, theirs = self.graph.tensors[t], self.theirs[output["name"]]
        name = f"{output['name']} ({layer['op']})"
        self.checks += theirs.size
        problem = self._type_problem(layer, output, t, node)
        mine = None if problem else same_layout(self.graph, t, values[t], theirs, node.operator)
        if mine is None:
            self.problems.append(f"{name}: {problem or f'shape {values[t].shape}, not {theirs.shape}'}")
            return
        order, back = mine
        gap = np.abs(order.astype(np.float64) - theirs.astype(np.float64))
        count = int(np.count_nonzero(~(gap == 0)))
        words = f"{name}: {count} of {gap.size} differ, at most by {float(gap.max(initial=0)):.4g}"
        inside = np.clip(theirs, tensor.dtype.minimum, tensor.dtype.maximum) if tensor.dtype.is_integer else theirs
        if np.any(inside != theirs):
            left.add(t)
            words += ": the tool's simulator leaves the type"
            (self.close if np.array_equal(inside, order) else self.problems).append(words)
        elif count:
            known = left.intersection(node.inputs) or is_close(order, theirs, tensor.dtype)
            (self.close if known else self.problems).append(words)
        values[t] = back(inside).astype(tensor.dtype.storage)

    def _type_problem(self, layer: dict[str, Any], output: dict[str, Any], t: int, node: Node) -> str:
        tensor = self.graph.tensors[t]
        # resizes and normalizations are called float16, and their results are not rounded
        unrounded = tensor.dtype is DType.FLOAT32 and node.attributes.text("engine", "") == "F16"
        if TYPES.get(output["type"]) is not tensor.dtype and not unrounded:
            return f"type {tensor.dtype.value}, the tool's is {output['type']}"
        if "scale" in output:
            pair = (float(tensor.affine.scale[0]), int(tensor.affine.zero_point[0]))
            if not np.isclose(pair[0], output["scale"], rtol=1e-6, atol=0) or pair[1] != output["zero_point"]:
                return f"scale {pair}, the tool's {output['scale'], output['zero_point']}"
        for key, number in integers_of(node).items():
            wanted = layer["attributes"].get(key, layer["attributes"].get(f"{key}s"))
            if wanted is not None and not np.array_equal(np.ravel(np.array(number)), np.ravel(wanted)):
                return f"{key} {number}, the tool's {wanted}"
        return ""


def is_close(mine: Array, theirs: Array, dtype: DType) -> bool:
    """Whether a layer's own difference is one of the known ones of floats."""
    if not dtype.is_floating or np.any(np.isfinite(mine) != np.isfinite(theirs)):
        return False
    gap = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
    if dtype is DType.FLOAT32:
        return bool(gap.max() <= SINGLE_SHARE * np.abs(theirs).max())
    largest = np.maximum(np.abs(mine), np.abs(theirs)).astype(np.float16)
    few = np.count_nonzero(gap) <= max(1, HALF_SHARE * gap.size)
    return bool(few and np.all(gap <= np.spacing(largest)))


def our_name(name: str, ours: dict[str, int]) -> str | None:
    """What tflq calls a tensor of the tool; it has no reshapes round a softmax."""
    plain = name.replace("_Softmax__softmax", "_Softmax")
    return next((key for key in (name, plain, re.sub(r"_reshape(_f32)?$", r"\1", plain)) if key in ours), None)


_BLOCKS = ("space_to_batch_nd", "batch_to_space_nd")


def same_layout(graph: Graph, t: int, value: Array, theirs: Array, operator: str) -> tuple[Array, Any] | None:
    """The value in that order of elements that fits the tool's best, and the way back for the tool's array.

    An image is in the order (c, h, w) there.
    """
    if value.size != theirs.size:
        return None
    orders = [(value.reshape(theirs.shape), lambda a: a.reshape(value.shape))]
    if operator in _BLOCKS:  # the tool has names for the value in front of what rearranges it
        ordered = np.empty_like(theirs).reshape(len(theirs), -1)
        np.put_along_axis(ordered, theirs.reshape(ordered.shape).argsort(1), np.sort(value.reshape(ordered.shape)), 1)
        orders.append((ordered.reshape(theirs.shape), lambda _: value))
    shapes = [s for s in (value.shape[1:] if value.ndim == 5 else None, flattened_image(graph, t)) if s is not None]
    for n, h, w, c in shapes:
        turned = value.reshape(-1, n, h, w, c).transpose(0, 1, 4, 2, 3).reshape(theirs.shape)
        back = lambda a, n=n, c=c, h=h, w=w: a.reshape(-1, n, c, h, w).transpose(0, 1, 3, 4, 2).reshape(value.shape)  # noqa: E731
        orders.append((turned, back))
    return min(orders, key=lambda order: np.count_nonzero(order[0] != theirs))


def flattened_image(graph: Graph, t: int) -> tuple[int, ...] | None:
    """The shape of the image that a tensor is, reshaped."""
    writers = graph.producers()
    while t in writers:
        node = graph.nodes[writers[t]]
        source = graph.tensors[node.inputs[0]]
        if node.operator == "reshape":
            return source.shape if len(source.shape) == 4 else None
        if node.operator not in ("quantize", "dequantize"):
            return None
        t = node.inputs[0]
    return None
