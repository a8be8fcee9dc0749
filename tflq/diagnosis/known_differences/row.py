"""Row of the table of known differences: operators, types, conditions on nodes or elements."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tflq.graph import ABSENT, Affine, Array, Blockwise, Graph, Node, Tensor
from tflq.graph.model import sparse_block
from tflq.graph.operators import Trait, has_trait, row_of
from tflq.interpreter.operands.checks import size_in_bytes
from tflq.interpreter.operands.lstm import is_basic
from tflq.schemas.tflite.flexbuffer import decode_flexbuffer


class Effect(Enum):
    """Effect of a difference on results."""

    LAST_BITS = "last bits"
    """Floats differ by a few ULP."""
    UNDEFINED = "undefined"
    """TFLite's kernel leaves the result open, or computes another one than the operator has; tflq runs."""
    REFUSED = "refused"
    """tflq refuses models for which TFLite aborts, reads outside its tensors, or has no defined result."""


@dataclass(frozen=True)
class Place:
    """An output of a node, with the values that both sides have.

    Attributes:
        node: the node.
        number: Index of the output among the node's outputs.
        inputs: the node's operands in TFLite, dtype[S or 1, *shape]; None for an absent operand.
        outputs: all outputs of TFLite.
        is_read: whether a node reads the output, or it is one of the graph's.
    """

    node: Node
    number: int
    inputs: Sequence[Array | None]
    outputs: Sequence[Array]
    is_read: bool = True


Condition = Callable[[Graph, Node], bool]
Elements = Callable[[Place], NDArray[np.bool_]]


@dataclass(frozen=True)
class KnownDifference:
    """One difference.

    Attributes:
        operators: Names of the operators; () for all operators.
        types: labels of the data's type, as `label_of` writes them: float32, int8q (with scale and zero point),
            `float32*` for float32 with integer weights; () for all types.
        what: Description of the difference, the refusal or the case.
        reason: Reason of the difference.
        effect: Effect on the results.
        units: LAST_BITS: largest distance in ULP; 0 if none has been seen.
        of: Value that defines the ULP: the result, the first input, or the largest element of the result.
        when: condition on the node; None for all nodes of these operators and types, and for refusals.
        elements: Function that marks the affected elements, bool[S, *shape] of the place's output; None for all.
        refusal: Words of tflq's message, if the table of conformance meets the refusal.
        stand_in: another model of TFLite judges in the table of conformance.
        package: Package of TFLite that the row applies to; "" for all.
        kernels: Set of TFLite's kernels that the row applies to; "" for all.
    """

    operators: tuple[str, ...]
    types: tuple[str, ...]
    what: str
    reason: str
    effect: Effect
    units: int = 0
    of: Literal["result", "input", "largest"] = "result"
    when: Condition | None = None
    elements: Elements | None = None
    refusal: str = ""
    stand_in: bool = False
    package: str = ""
    kernels: str = ""

    def covers(self, operator: str, label: str) -> bool:
        """Whether the row covers an operator in a type; conditions are not evaluated."""
        return (not self.operators or operator in self.operators) and (not self.types or _among(label, self.types))

    @property
    def name(self) -> str:
        """The operators and the difference: `softmax (float32, float16): last bits`."""
        return f"{self.operator_words} ({self.type_words}): {self.words}"

    @property
    def operator_words(self) -> str:
        """The operators, with commas between them."""
        return ", ".join(self.operators) or "all operators"

    @property
    def type_words(self) -> str:
        """The types, with commas between them."""
        return ", ".join(self.types) or "all"

    @property
    def words(self) -> str:
        """Description of the difference, with the bound."""
        return f"{self.what}: up to {self.units} ulp of the {self.of}" if self.units else self.what


def label_of(graph: Graph, node: Node) -> str:
    """Return the type of a node's data: int8 plain, int8q with scale and zero point, float32*int8 with int8 weights."""
    data = _data(graph, node)
    if data is None:
        return ""
    label = data.dtype.value + "q" * (data.dtype.is_integer and isinstance(data.quantization, Affine))
    weights = [graph.tensors[t] for t in node.inputs[1:] if t != ABSENT]
    integers = [w.dtype.value for w in weights if w.dtype.is_integer and w.quantization is not None]
    return f"{label}*{integers[0]}" if data.dtype.is_floating and integers else label


def _data(graph: Graph, node: Node) -> Tensor | None:
    place = row_of(node).data
    if has_trait(node, Trait.RANDOM) and node.outputs:
        return graph.tensors[node.outputs[0]]
    return graph.tensors[node.inputs[place]] if place < len(node.inputs) and node.inputs[place] != ABSENT else None


def _among(label: str, types: Sequence[str]) -> bool:
    """Whether a label is one of the types; int8q has weights of any width, float32* any integer weights."""
    data, star, _ = label.partition("*")
    return label in types or (bool(star) and (f"{data}*" in types or (data.endswith("q") and data in types)))


_POINTER_BYTES = 8
_LONG = 2048
_SPLIT = 504
_REGISTER = 4


def _operands(graph: Graph, node: Node) -> list[Tensor]:
    return [graph.tensors[t] for t in node.inputs if t != ABSENT]


def has_no_elements(graph: Graph, node: Node) -> bool:
    """The data has an axis of size 0."""
    return 0 in graph.tensors[node.inputs[0]].shape


def writes_variable_in_place(graph: Graph, node: Node) -> bool:
    """Whether TFLite's arena assigns the node's variable the memory of an operand that no other node reads.

    Both have the same size, at least that of a pointer, and neither is an output of the graph. In a sweep over 5000
    networks of tests/support/streaming.py, TFLite fails to clear the variable in exactly these cases.
    """
    target = node.outputs[0]
    tensor = graph.tensors[target]
    size = size_in_bytes(tensor.shape, tensor.dtype)
    if not tensor.is_variable or target in graph.outputs or size < _POINTER_BYTES:
        return False
    operands = [t for t in node.inputs if t != ABSENT and _has_one_reader(graph, t)]
    return any(size_in_bytes(graph.tensors[t].shape, graph.tensors[t].dtype) == size for t in operands)


def _has_one_reader(graph: Graph, t: int) -> bool:
    """Whether a node computes tensor `t` and a single operand reads it."""
    tensor = graph.tensors[t]
    is_computed = not (tensor.is_constant or tensor.is_variable or t in graph.inputs)
    return is_computed and t not in graph.outputs and sum(node.inputs.count(t) for node in graph.nodes) == 1


def has_sparse_constant(graph: Graph, node: Node) -> bool:
    """A constant is stored sparsely in the file."""
    return any(sparse_block(tensor) is not None for tensor in _operands(graph, node))


def has_weights_in_blocks(graph: Graph, node: Node) -> bool:
    """The weights have a scale for each block."""
    return any(isinstance(tensor.quantization, Blockwise) for tensor in _operands(graph, node))


def has_computed_weights(graph: Graph, node: Node) -> bool:
    """Hybrid and asymmetric, with a right matrix that is no constant: it changes from one invocation to the next."""
    return _is_asymmetric(node) and not graph.tensors[node.inputs[1]].is_constant


def has_long_rows(graph: Graph, node: Node) -> bool:
    """Hybrid and asymmetric, with rows of more than 2048 weights: sums of an eighth of a row may leave int16."""
    weights = [t for t in _operands(graph, node)[1:] if t.dtype.is_integer and len(t.shape) > 1]
    return _is_asymmetric(node) and any(t.shape[-1] > _LONG for t in weights)


def has_float_results(graph: Graph, node: Node) -> bool:
    """Whether a result is floating-point."""
    return any(graph.tensors[t].dtype.is_floating for t in node.outputs)


def _is_asymmetric(node: Node) -> bool:
    return bool(node.attributes.get("asymmetric_quantize_inputs", False))


def searches_last_axis(graph: Graph, node: Node) -> bool:
    """The axis is a constant and the last one."""
    data, axis = (graph.tensors[t] for t in node.inputs[:2])
    return axis.data is not None and int(axis.data.reshape(-1)[0]) % max(len(data.shape), 1) == len(data.shape) - 1


def host_has_new_tanh(_graph: Graph, node: Node) -> bool:
    """12 intermediates, on a host with glibc 2.41 or later, which has another tanhf."""
    library, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return len(node.intermediates or ()) == 12 and library == "glibc" and numbers >= (2, 41)


def leaves_registers(graph: Graph, node: Node) -> bool:
    """A gate's number of cells is no multiple of four, or sequences side by side meet rows of more than 504 weights.

    The forget gate's weights, [cells, inputs], are operand 2 (and 19 backwards); the basic cell has [4 * cells, ...].
    """
    places = (2, 19) if node.operator == "bidirectional_sequence_lstm" else (2,)
    rows = [graph.tensors[node.inputs[p]].shape[0] for p in places]
    cells = [n // _REGISTER if is_basic(node) else n for n in rows]
    data = graph.tensors[node.inputs[0]].shape
    side_by_side = len(data) == 2 or node.attributes.boolean("time_major", False)
    is_split = side_by_side and data[-2] > 1 and any(n > _SPLIT for n in _depths(graph, node))
    return is_split or any(n % _REGISTER for n in cells)


def _depths(graph: Graph, node: Node) -> list[int]:
    """Lengths of the rows of all matrices."""
    return [t.shape[-1] for t in _operands(graph, node)[1:] if len(t.shape) == 2 and t.is_constant]


def rows_with_nan(place: Place) -> NDArray[np.bool_]:
    """Places with a NaN in their row of the data along the last axis."""
    has_nan = np.isnan(_given(place.inputs[0])).any(axis=-1)
    return np.broadcast_to(has_nan, place.outputs[place.number].shape)


def suppresses_fast(graph: Graph, node: Node) -> bool:
    """The custom options do not request regular suppression."""
    options = decode_flexbuffer(node.custom_options or b"", graph.name)
    return isinstance(options, dict) and not options.get("use_regular_nms", False)


def slots_behind_the_last_box(place: Place) -> NDArray[np.bool_]:
    """Elements of boxes, classes and scores from slot `number of boxes` on."""
    result = place.outputs[place.number]
    if place.number > 2 or len(place.outputs) < 4:
        return np.zeros(result.shape, np.bool_)
    boxes = place.outputs[3].astype(np.int64).reshape(-1, 1)
    behind = np.arange(result.shape[2])[None] >= boxes
    return np.broadcast_to(behind.reshape(len(boxes), 1, -1, *[1] * (result.ndim - 3)), result.shape)


def results_that_nothing_reads(place: Place) -> NDArray[np.bool_]:
    """All elements, if neither a node nor the graph's outputs read them."""
    return np.full(place.outputs[place.number].shape, not place.is_read)


def floats_that_do_not_fit(place: Place) -> NDArray[np.bool_]:
    """CAST of floats that are NaN or, cut toward zero, no number of the integer type."""
    source, result = _given(place.inputs[0]), place.outputs[place.number]
    if source.dtype.kind != "f" or result.dtype.kind not in "iu":
        return np.zeros(result.shape, np.bool_)
    ends = np.iinfo(result.dtype.name)
    whole = np.trunc(source.astype(np.float64))
    fits = (whole >= float(ends.min)) & (whole < float(ends.max) + 1)
    return np.broadcast_to(~fits, result.shape)


def _given(array: Array | None) -> Array:
    if array is None:
        raise ValueError("the first operand is absent")
    return array
