"""One scale and zero point for each activation: tensors that operators bind together share theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.converters.tflite_quantiser.choose_kinds import Choice
from tflq.converters.tflite_quantiser.prepare import Prepared
from tflq.converters.tflite_quantiser.rules import RULES
from tflq.converters.tflite_quantiser.scales import BITS, activation
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, DType, Graph, Node

Key = tuple[int, str]
"""A tensor in one kind: an activation may be needed as int8 here and as int16 there."""


def activation_inputs(graph: Graph, node: Node) -> Iterator[tuple[int, int]]:
    """Yield (position, tensor) of the real-valued inputs that are neither weights nor bias."""
    found = RULES[node.operator].filter if node.operator in RULES else None
    special = () if found is None else (found.weights, found.bias)
    for position, t in enumerate(node.inputs):
        if t != ABSENT and position not in special and graph.tensors[t].dtype is DType.FLOAT32:
            yield position, t


def activation_outputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the real-valued outputs."""
    return tuple(t for t in node.outputs if graph.tensors[t].dtype is DType.FLOAT32)


@dataclass
class _Group:
    """Tensors with one quantisation."""

    bounds: tuple[float, float] | None = None
    fixed: Affine | None = None
    narrow: bool = False

    def fits(self, other: _Group) -> bool:
        """Whether the values of another group have quantized values here, where the scale is fixed."""
        if self.fixed is None or other.bounds is None:
            return True
        scale, zero_point = float(self.fixed.scale[0]), int(self.fixed.zero_point[0])
        low, high = (scale * (q - zero_point) for q in (self.fixed.minimum_code, self.fixed.maximum_code))
        return low - scale <= other.bounds[0] and other.bounds[1] <= high + scale


@dataclass
class Scales:
    """The quantisation of every activation.

    Attributes:
        prepared: the float network.
        symmetric: whether zero points of int8 activations are 0.
    """

    prepared: Prepared
    symmetric: bool = False
    _parents: dict[Key, Key] = field(default_factory=dict)
    _groups: dict[Key, _Group] = field(default_factory=dict)

    def of(self, t: int, kind: str) -> Affine:
        """Return the quantisation of a computed tensor.

        Raises:
            UnsupportedError: it has no range.
        """
        group = self._groups[self._root((t, kind))]
        if group.fixed is not None:
            return group.fixed
        name = self.prepared.graph.tensors[t].name
        if group.bounds is None:
            raise UnsupportedError(f"tensor '{name}' has no range")
        try:
            return activation(*group.bounds, kind, self.symmetric, group.narrow)
        except UnsupportedError as error:
            raise UnsupportedError(f"tensor '{name}': {error}") from None

    def of_constant(self, t: int, kind: str) -> Affine:
        """Return the quantisation of a constant activation: of the range of its own values, or of FAKE_QUANT."""
        tensor, stated = self.prepared.graph.tensors[t], self.prepared.stated.get(t)
        assert tensor.data is not None
        bounds = (float(tensor.data.min(initial=0.0)), float(tensor.data.max(initial=0.0)))
        if stated is not None:
            bounds = (stated.minimum, stated.maximum)
        try:
            return activation(*bounds, kind, self.symmetric, stated is not None and stated.narrow)
        except UnsupportedError as error:
            raise UnsupportedError(f"constant '{tensor.name}': {error}") from None

    def has_range(self, t: int, kind: str) -> bool:
        """Whether `of` can answer."""
        group = self._groups[self._root((t, kind))]
        return group.fixed is not None or group.bounds is not None

    def fix(self, t: int, kind: str, scale: float, zero_point: int) -> None:
        """Give a tensor the one quantisation that its kernel can write."""
        self._groups[self._root((t, kind))].fixed = Affine.per_tensor(np.float32(scale), zero_point, BITS[kind])

    def bind(self, a: int, b: int, kind: str) -> None:
        """Let two tensors share their quantisation, where a fixed scale does not cut off values."""
        first, second = self._root((a, kind)), self._root((b, kind))
        if first == second:
            return
        one, two = self._groups[first], self._groups[second]
        if not one.fits(two) or not two.fits(one) or (one.fixed and two.fixed and one.fixed != two.fixed):
            return
        bounds = [g.bounds for g in (one, two) if g.bounds is not None]
        one.fixed = one.fixed or two.fixed
        one.narrow = all(g.narrow for g in (one, two) if g.bounds is not None) and bool(bounds)
        one.bounds = (min(b[0] for b in bounds), max(b[1] for b in bounds)) if bounds else None
        self._parents[second] = first

    def _root(self, key: Key) -> Key:
        if key not in self._parents:
            self._parents[key] = key
            found = self.prepared.graph.tensors[key[0]].range
            stated = self.prepared.stated.get(key[0])
            bounds = None if found is None else (float(found.minimum.min()), float(found.maximum.max()))
            self._groups[key] = _Group(bounds, None, stated is not None and stated.narrow)
        while self._parents[key] != key:
            key = self._parents[key]
        return key


def choose_scales(prepared: Prepared, choices: Sequence[Choice], symmetric: bool) -> Scales:
    """Return the quantisations that the integer nodes need.

    Operators that share one scale bind their outputs and, where it is their only activation or nobody else reads it,
    their inputs; another input is converted in front of them.

    Raises:
        UnsupportedError: tensors without a range, all at once.
    """
    graph, scales = prepared.graph, Scales(prepared, symmetric)
    chosen = [(node, choice.kind) for node, choice in zip(graph.nodes, choices, strict=True) if choice.is_integer]
    for node, kind in chosen:
        for t in activation_outputs(graph, node):
            if kind in RULES[node.operator].fixed:
                scales.fix(t, kind, *RULES[node.operator].fixed[kind])
    readers = graph.consumers()
    for node, kind in chosen:
        if RULES[node.operator].same:
            _bind(scales, node, kind, readers)
    _require_ranges(scales, chosen)
    return scales


def _bind(scales: Scales, node: Node, kind: str, readers: dict[int, list[int]]) -> None:
    graph = scales.prepared.graph
    outputs = activation_outputs(graph, node)
    inputs = [t for _, t in activation_inputs(graph, node) if graph.tensors[t].data is None]
    for t in outputs[1:]:
        scales.bind(outputs[0], t, kind)
    for t in inputs if outputs else ():
        if len(inputs) == 1 or (len(readers[t]) == 1 and t not in graph.outputs):
            scales.bind(outputs[0], t, kind)


def _require_ranges(scales: Scales, chosen: Sequence[tuple[Node, str]]) -> None:
    graph = scales.prepared.graph
    needed = dict.fromkeys(
        (t, kind)
        for node, kind in chosen
        for t in (*(t for _, t in activation_inputs(graph, node)), *activation_outputs(graph, node))
        if graph.tensors[t].data is None
    )
    missing = [graph.tensors[t].name for t, kind in needed if not scales.has_range(t, kind)]
    way_out = (
        "calibrate the model on samples (--calibrate), give a file of ranges (--ranges), or train it with FAKE_QUANT "
        "operators; type=weights and type=hybrid need no ranges"
    )
    refuse_missing_ranges(missing, len(needed), way_out)
