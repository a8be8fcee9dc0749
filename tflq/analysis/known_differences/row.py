"""One row of the table of known differences, and how it says which nodes and elements it holds for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tflq.graph import ABSENT, Affine, Array, Graph, Node, Tensor


class Effect(Enum):
    """What a difference does to results."""

    LAST_BITS = "last bits"
    """Floats lie a few units in the last place apart."""
    UNDEFINED = "undefined"
    """TFLite's kernel leaves the result open, or computes another one than the operator has; tflq runs."""
    REFUSED = "refused"
    """tflq refuses what TFLite aborts at, reads outside its tensors for, or gives no defined result for."""


@dataclass(frozen=True)
class Place:
    """An output of a node, with what both sides know of it.

    Attributes:
        node: the node.
        number: of the output among the node's.
        inputs: the node's operands as TFLite had them, dtype[S or 1, *shape]; None for one that is absent.
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
        operators: their names; () for all operators.
        types: labels of the data's type, as `label_of` writes them: float32, int8q (with scale and zero point),
            `float32*` for float32 with integer weights; () for all types.
        what: what differs or is refused, or in which case, in words.
        reason: why.
        effect: what it does.
        units: LAST_BITS: the largest distance in units in the last place; 0 where none has been seen.
        of: whose last place: the result's, that of the first input, or that of the largest element of the result.
        when: condition on the node; None where it holds for all nodes of these operators and types. Refusals need none.
        elements: marks the elements that it holds for, bool[S, *shape] of the place's output; None for all.
        refusal: words of tflq's message, where the table of conformance comes upon the refusal.
        stand_in: another model of TFLite judges in the table of conformance.
        package: holds against this package of TFLite only; "" for all.
        kernels: holds against this set of TFLite's kernels only; "" for all.
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
        """Whether the row is about an operator in a type; the conditions are not asked."""
        return (not self.operators or operator in self.operators) and (not self.types or _among(label, self.types))

    @property
    def name(self) -> str:
        """The operators and what differs: `softmax (float32, float16): last bits`."""
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
        """What differs, with the bound."""
        return f"{self.what}: up to {self.units} ulp of the {self.of}" if self.units else self.what


_DATA = {"transpose_conv": 2, "embedding_lookup": 1}
"""Which operand is the data, where it is not the first."""
_DRAWN = ("random_uniform", "random_standard_normal", "multinomial")
"""Operators whose result decides the type."""


def label_of(graph: Graph, node: Node) -> str:
    """Return the type of a node's data: int8 plain, int8q with scale and zero point, float32*int8 with int8 weights."""
    data = _data(graph, node)
    if data is None:
        return ""
    label = data.dtype.value + "q" * (data.dtype.is_integer and isinstance(data.quantisation, Affine))
    weights = [graph.tensors[t] for t in node.inputs[1:] if t != ABSENT]
    integers = [w.dtype.value for w in weights if w.dtype.is_integer and w.quantisation is not None]
    return f"{label}*{integers[0]}" if data.dtype.is_floating and integers else label


def _data(graph: Graph, node: Node) -> Tensor | None:
    place = _DATA.get(node.operator, 0)
    if node.operator in _DRAWN and node.outputs:
        return graph.tensors[node.outputs[0]]
    return graph.tensors[node.inputs[place]] if place < len(node.inputs) and node.inputs[place] != ABSENT else None


def _among(label: str, types: Sequence[str]) -> bool:
    """Whether a label is one of the types; int8q has weights of any width, float32* any integer weights."""
    data, star, _ = label.partition("*")
    return label in types or (bool(star) and (f"{data}*" in types or (data.endswith("q") and data in types)))
