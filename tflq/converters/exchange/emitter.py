"""The interface between rules and formats: values in either layout, constants, operators of ONNX."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tflq.converters.mappings import find_rule
from tflq.converters.passes.patterns import TO_FIRST, TO_LAST, axis_first, shape_first
from tflq.converters.passes.requirements import no_mapping
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Array, Graph, Node, Operands, Tensor
from tflq.graph.operators import RECTIFIER_BOUNDS
from tflq.graph.rewriting import fused_activation

Kind = np.dtype[np.generic]
ExchangeAttribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
INT64: Kind = np.dtype(np.int64)
INT32: Kind = np.dtype(np.int32)
FLOAT32: Kind = np.dtype(np.float32)
BOOL: Kind = np.dtype(np.bool_)
Writing = TypeVar("Writing", bound="Emitter")
CLAMPS = RECTIFIER_BOUNDS
"""Activations that clamp: what they clamp to."""


@dataclass(frozen=True)
class Value:
    """A value of the network that is written.

    Attributes:
        name: of the value, unique.
        shape: as it is written.
        dtype: of its elements; quantized values are real numbers here.
        is_first: of 4 axes: whether they are [N, C, H, W], for [N, H, W, C] in the model.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Kind
    is_first: bool = False

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def axis(self, axis: int) -> int:
        """Return where the model's axis stands; negative ones count from the back."""
        return axis_first(axis, self.rank) if self.is_first else axis % self.rank


@dataclass(frozen=True)
class ExchangeRule:
    """The rule of an operator of another package.

    Attributes:
        write: Adds the operators of ONNX that a node becomes, and binds its outputs.
    """

    write: Callable[[Emitter], None]


class Emitter(ABC):
    """Writes one graph in a format; a rule adds the operators of ONNX that one node becomes.

    Attributes:
        graph: Graph that is written.
        index: Index of the current node.
        readers: Tensor -> nodes that read it.
        flattened: Tensor that stores a flattened image in the order (c, h, w) -> (h, w, c) of that image.
        simplifies: Whether windows omit strides and padding without effect, and a reshaped image keeps its layout if
            possible.
        target: Name of the target that the rules of other packages are for.
        refusal: Reason that refuses an operator without a rule; `{}` is its name.
    """

    simplifies = False
    target = ""
    refusal = "no rule writes {}"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.index = 0
        self.flattened: dict[int, tuple[int, int, int]] = {}
        self.readers = graph.consumers()

    @abstractmethod
    def has(self, kind: str) -> bool:
        """Whether an operator that ONNX got late, or that ONNX does not have, can be written."""

    @abstractmethod
    def is_written(self, t: int) -> bool:
        """Whether a tensor is an input or was computed by a rule."""

    @abstractmethod
    def stored(self, t: int) -> Value:
        """Return a tensor, constant or computed, in its stored layout; quantized values are dequantized."""

    @abstractmethod
    def in_layout(self, t: int, first: bool) -> Value:
        """Return a tensor in a layout; the stored value if its axes are not 4."""

    @abstractmethod
    def number(self, name: str, array: Array) -> Value:
        """Add a constant."""

    @abstractmethod
    def weights(self, t: int, array: Array, axis: int) -> Value:
        """Add a constant tensor of the graph, rearranged, as the format has weights; channels stand along `axis`."""

    @abstractmethod
    def add_multi(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        results: Sequence[tuple[tuple[int, ...], Kind]],
        first: bool,
        label: str = "",
        **attributes: ExchangeAttribute,
    ) -> list[Value]:
        """Add an operator of ONNX.

        Args:
            kind: Name of the operator.
            inputs: Operands; None for an optional one that is absent.
            results: Shape and type of each result.
            first: Whether results of 4 axes are [N, C, H, W].
            label: Name of a part of the node, for formats that name operators; empty for the node's own operator.
            attributes: Attributes as ONNX names them.
        """

    @abstractmethod
    def set_tensor(self, t: int, value: Value) -> None:
        """Bind a tensor of the graph to a value; it is quantized if the tensor is."""

    def is_omitted(self, node: Node) -> bool:  # noqa: ARG002 - for formats that omit some
        """Whether a node is not written."""
        return False

    @abstractmethod
    def require(self, node: Node) -> None:
        """Check a node before its rule runs.

        Raises:
            UnsupportedError: a type that the format cannot write.
        """

    def in_order(self, t: int) -> Value:
        """Return a tensor with its elements in the model's order, for a Reshape."""
        return self.in_layout(t, False)

    def write(self: Writing, rules: Mapping[str, Callable[[Writing], None]]) -> tuple[str, ...]:
        """Run the rule of each node; return one line for each node that cannot be written.

        Nodes that read the output of such a node are skipped.
        """
        problems: list[str] = []
        for index, node in enumerate(self.graph.nodes):
            self.index = index
            if self.is_omitted(node):
                continue
            try:
                rule = rules.get(node.operator) or self._find_extra_rule()
                self.require(node)
                if all(t == ABSENT or self.tensor(t).is_constant or self.is_written(t) for t in node.inputs):
                    rule(self)
            except (UnsupportedError, GraphError) as error:
                problems.append(f"{self.graph.where(index)}: {error}")
        return tuple(problems)

    def _find_extra_rule(self) -> Callable[[Emitter], None]:
        """Return the rule that another package has for the current node.

        Raises:
            UnsupportedError: No package has a rule.
        """
        rule = find_rule(self.target, self.node, ExchangeRule)
        if rule is None:
            raise UnsupportedError(no_mapping(self.node, self.refusal.format(self.node.operator)))
        return rule.write

    @property
    def node(self) -> Node:
        """The node whose rule runs."""
        return self.graph.nodes[self.index]

    @property
    def operands(self) -> Operands:
        """The node's operands, as kernels see them."""
        return self.graph.operands(self.index)

    def tensor(self, t: int) -> Tensor:
        """Return a tensor of the graph."""
        return self.graph.tensors[t]

    def optional(self, position: int) -> int | None:
        """Return the tensor at a position of the node's inputs; None where it has none."""
        inputs = self.node.inputs
        return inputs[position] if position < len(inputs) and inputs[position] != ABSENT else None

    def constant_at(self, position: int) -> Array:
        """Return the constant at a position of the node's inputs.

        Raises:
            UnsupportedError: it is computed at run time.
        """
        tensor = self.tensor(self.node.inputs[position])
        if tensor.data is None:
            raise UnsupportedError(f"'{tensor.name}' is computed at run time; a constant is needed")
        return tensor.data

    def output(self, position: int = 0) -> Tensor:
        """Return a tensor that the node writes."""
        return self.tensor(self.node.outputs[position])

    def add(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        shape: Sequence[int] | None = None,
        dtype: Kind | None = None,
        first: bool | None = None,
        options: Mapping[str, ExchangeAttribute] | None = None,
        label: str = "",
        **attributes: ExchangeAttribute,
    ) -> Value:
        """Add an operator with one result (default: shape, type and layout of its first input)."""
        like = inputs[0]
        assert like is not None
        result = (like.shape if shape is None else tuple(shape), dtype or like.dtype)
        laid = like.is_first and len(result[0]) == 4 if first is None else first
        return self.add_multi(kind, inputs, [result], laid, label, **(options or {}), **attributes)[0]

    def pair(self, kind: str, *operands: Value, dtype: Kind | None = None, label: str = "") -> Value:
        """Add an operator with two operands that broadcast."""
        shape = np.broadcast_shapes(*(v.shape for v in operands))
        return self.add(kind, operands, shape, dtype, any(v.is_first for v in operands), label=label)

    def whole(self, name: str, numbers: Sequence[int] | int) -> Value:
        """Add an int64 constant: axes, shapes, indices."""
        return self.number(name, np.asarray(numbers, np.int64))

    def like(self, value: Value, name: str, number: float) -> Value:
        """Add a scalar of a value's type."""
        return self.number(name, np.asarray(number, value.dtype))

    def cast(self, value: Value, dtype: Kind) -> Value:
        """Return the value in another type."""
        return value if value.dtype == dtype else self.add("Cast", [value], dtype=dtype, to=dtype.name)

    def reshaped(self, value: Value, shape: Sequence[int], label: str = "") -> Value:
        """Return a value in another shape; the axes of both are the model's."""
        if value.shape == tuple(shape):
            return value
        if 0 in shape:
            raise UnsupportedError(f"a tensor of shape {tuple(shape)}, without elements")
        return self.add("Reshape", [value, self.whole("shape", tuple(shape))], shape, first=False, label=label)

    def transposed(self, value: Value, order: Sequence[int], first: bool = False, label: str = "") -> Value:
        """Return a value with its axes in another order."""
        order = tuple(order)
        shape = tuple(value.shape[a] for a in order)
        return self.add("Transpose", [value], shape, first=first, label=label, perm=order)

    def plain(self, position: int) -> Value:
        """Return the node's input in the model's own layout."""
        return self.in_layout(self.node.inputs[position], False)

    def first(self, position: int) -> Value:
        """Return the node's input with channels first where it has 4 axes."""
        return self.in_layout(self.node.inputs[position], True)

    def at(self, position: int) -> Value:
        """Return the node's input in the layout in which it is there."""
        return self.stored(self.node.inputs[position])

    def together(self, positions: Sequence[int]) -> list[Value]:
        """Return inputs of the node that broadcast, in one layout: channels first where one of them stands so."""
        tensors = [self.node.inputs[p] for p in positions]
        rank = max(len(self.tensor(t).shape) for t in tensors)
        computed = [t for t in tensors if not self.tensor(t).is_constant and len(self.tensor(t).shape) == 4]
        first = rank == 4 and any(self.stored(t).is_first for t in computed)
        return [self.beside(t, first) for t in tensors]

    def beside(self, t: int, first: bool) -> Value:
        """Return a tensor so that it broadcasts beside images in a layout: axes of 1 in front, [C] as [1, C, 1, 1]."""
        tensor = self.tensor(t)
        if tensor.data is not None:
            return self.weights(t, _beside(tensor.data, first), 0)
        if len(tensor.shape) == 4 or not first or not tensor.shape:
            return self.in_layout(t, first)
        value = self.reshaped(self.in_layout(t, False), (1,) * (4 - len(tensor.shape)) + tensor.shape)
        return turned(self, value, first)

    def result(self, value: Value) -> None:
        """Let the node's output be this value behind the node's fused activation.

        Raises:
            UnsupportedError: another activation than those that clamp.
        """
        self.set_tensor(self.node.outputs[0], self.clamped(value, fused_activation(self.node)))

    def clamped(self, value: Value, activation: str) -> Value:
        """Return the value behind an activation that clamps; raises as `result`."""
        if activation == "none":
            return value
        if activation not in CLAMPS:
            raise UnsupportedError(
                f"fused activation {activation}; known are none, {', '.join(CLAMPS)}: make it an operator of its own"
            )
        low, high = CLAMPS[activation]
        if value.dtype != FLOAT32:
            value = self.pair("Max", value, self.like(value, "minimum", low))
            return value if high is None else self.pair("Min", value, self.like(value, "maximum", high))
        if high is None:
            return self.add("Relu", [value], label="relu")
        bounds = [self.like(value, "minimum", low), self.like(value, "maximum", high)]
        return self.add("Clip", [value, *bounds], label="clamp")


def _beside(data: Array, first: bool) -> Array:
    if data.size == 1 or not first:
        return data
    image = data.reshape((1,) * (4 - data.ndim) + data.shape).transpose(TO_FIRST)
    return np.asarray(image.reshape(image.shape[1:]) if image.shape[0] == 1 else image)


Rule = Callable[[Emitter], None]


def turned(emitter: Emitter, value: Value, first: bool) -> Value:
    """Return an image in a layout; other values as they are."""
    if value.rank != 4 or value.is_first == first:
        return value
    return emitter.transposed(value, TO_FIRST if first else TO_LAST, first, "nchw" if first else "nhwc")


def written_shape(shape: Sequence[int], first: bool) -> tuple[int, ...]:
    """Return a shape of the model in a layout."""
    return shape_first(shape) if first else tuple(shape)


def is_same_order(shape: tuple[int, ...]) -> bool:
    """Whether [N, C, H, W] and [N, H, W, C] have their elements in the same order."""
    return shape[1] == 1 or (shape[2] == 1 and shape[3] == 1)
