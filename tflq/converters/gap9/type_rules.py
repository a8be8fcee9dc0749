"""What a unit can write and what it asks of its inputs (docs/gap9.md, 1, 7, 8 and 11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.converters.gap9.affine_types import asymmetric, power_of_two, real_range, symmetric
from tflq.converters.gap9.units import Unit
from tflq.errors import GraphError
from tflq.graph import Affine, Graph, Range

SOFTMAX_OUT = Affine(np.array([2.0**-15]), np.zeros(1, np.int64), None, 16, True)
SOFTMAX_OUT_8 = Affine(np.array([2.0**-7]), np.zeros(1, np.int64), None, 8, True)
_CURVE_INPUT = symmetric(real_range(-8, 8))
"""Of sigmoid and tanh that stand alone."""


@dataclass(frozen=True)
class Codes:
    """An integer type: bits and signedness."""

    bits: int
    signed: bool

    @classmethod
    def of(cls, affine: Affine) -> Codes:
        """Return the quantized values of a type."""
        return cls(affine.bits, affine.signed)

    def quantised(self, range_: Range, is_symmetric: bool) -> Affine:
        """Return these quantized values with scale and zero point for a range."""
        return (symmetric if is_symmetric else asymmetric)(range_, self.bits, self.signed)


INT8, UINT8 = Codes(8, True), Codes(8, False)
LSTM = "unidirectional_sequence_lstm"


@dataclass(frozen=True)
class Offer:
    """What a unit, or a graph input, can write.

    Attributes:
        codes: its own choice first, then what it can write if every reader asks for that.
        own: the range of its own choice.
        symmetric: whether its own choice is symmetric.
        symmetric_only: whether it cannot write another zero point.
        fixed: the one type that it writes, whoever reads.
        follows: whether it writes whatever the first reader asks for (graph inputs).
    """

    codes: tuple[Codes, ...]
    own: Range
    symmetric: bool = False
    symmetric_only: bool = False
    fixed: Affine | None = None
    follows: bool = False


@dataclass(frozen=True)
class Demand:
    """What a unit asks of one input.

    Attributes:
        codes: integer type.
        symmetric: whether the zero point must be in the middle.
        exact: all of scale and zero point, where they are given.
        power_of_two: whether the scale must be a power of 2.
        file_range: whether a conversion from another type takes the file's range, instead of the producer's own.
        pushes_file_range: whether even a producer of the same integer type takes the file's range (padded SQ8 filter).
    """

    codes: Codes
    symmetric: bool = False
    exact: Affine | None = None
    power_of_two: bool = False
    file_range: bool = True
    pushes_file_range: bool = False

    def accepts(self, given: Affine) -> bool:
        """Whether a type can stay as it is."""
        if Codes.of(given) != self.codes:
            return False
        if self.exact is not None:
            return bool(given.scale[0] == self.exact.scale[0] and given.zero_point[0] == self.exact.zero_point[0])
        middle = 0 if given.signed else 1 << (given.bits - 1)
        if self.power_of_two and power_of_two(given).scale[0] != given.scale[0]:
            return False
        return not (self.symmetric or self.power_of_two) or int(given.zero_point[0]) == middle

    def converted(self, file_range: Range, own: Range, source: Codes) -> Affine:
        """Return the type that a Quantize node in front of this input writes."""
        if self.exact is not None:
            return self.exact
        if not self.codes.signed:
            return self.codes.quantised(file_range, False)
        found = symmetric(own if source.signed or not self.file_range else file_range, self.codes.bits)
        return power_of_two(found) if self.power_of_two else found


def range_of(graph: Graph, tensor: int) -> Range:
    """Return the range stated for a tensor.

    Raises:
        GraphError: it has none.
    """
    found = graph.tensors[tensor].range
    if found is None:
        raise GraphError(f"tensor '{graph.tensors[tensor].name}' has no range")
    return found


def own_range(graph: Graph, unit: Unit) -> Range:
    """Return the range that a unit chooses itself.

    Behind a ReLU [0, max], a ReLU6 [0, 6], a sigmoid [0, 1], a tanh [-1, 1], in float64; else the file's.
    """
    stated = range_of(graph, unit.outputs[0])
    fixed = {"relu6": (0.0, 6.0), "logistic": (0.0, 1.0), "tanh": (-1.0, 1.0)}
    if unit.activation == "relu":
        return real_range(0.0, float(stated.maximum[0]))
    return real_range(*fixed[unit.activation]) if unit.activation in fixed else stated


def offer_of(graph: Graph, unit: Unit, bits: int, softmax_out_8bits: bool) -> Offer:
    """Return what a unit can write.

    Args:
        graph: with ranges.
        unit: no move, unless its input is cut off.
        bits: of NE16's activations.
        softmax_out_8bits: as the option.
    """
    if unit.operator == "softmax":
        fixed = SOFTMAX_OUT_8 if softmax_out_8bits and bits == 8 else SOFTMAX_OUT
        return Offer((Codes.of(fixed),), real_range(-1, 1), True, True, fixed)
    own, unsigned = own_range(graph, unit), Codes(bits, False)
    if unit.operator == LSTM:
        fixed = state_type(own, unit.on_ne16)
        return Offer((Codes.of(fixed),), own, True, True, fixed)
    if unit.operator == "leaky_relu":
        fixed = symmetric(own)
        return Offer((INT8,), own, True, True, fixed)
    if not unit.on_ne16:
        only = (not unit.is_filter and not unit.is_move) or unit.padded_pool
        return Offer((INT8,), own, symmetric=only or unit.has_curve, symmetric_only=only)
    if unit.is_plain_filter:
        return Offer((unsigned, INT8, *([Codes(16, True)] if bits == 16 else [])), own)
    return Offer((unsigned, INT8) if unit.has_curve else (unsigned,), own)


def demand_of(graph: Graph, unit: Unit, bits: int) -> Demand:
    """Return what a unit asks of each of its computed inputs.

    Args:
        graph: with ranges.
        unit: no move.
        bits: of NE16's activations.
    """
    if unit.is_filter:
        return Demand(Codes(bits, False)) if unit.on_ne16 else Demand(INT8, unit.padded, pushes_file_range=unit.padded)
    if unit.operator in ("add", "sub", LSTM):
        return Demand(Codes(bits, False)) if unit.on_ne16 else Demand(INT8, symmetric=True)
    if unit.operator == "softmax":
        return Demand(Codes(16 if bits == 16 else 8, True), symmetric=True, power_of_two=True)
    if unit.operator in ("mean", "sum"):
        return Demand(INT8, symmetric=True)
    if unit.operator in ("logistic", "tanh"):
        return Demand(INT8, exact=_CURVE_INPUT)
    if unit.operator == "leaky_relu":
        return Demand(INT8, exact=symmetric(range_of(graph, unit.outputs[0])))
    if unit.operator == "hard_swish":
        stated = range_of(graph, unit.inputs[0][1])
        top = np.maximum(stated.maximum, stated.maximum.dtype.type(6))
        return Demand(INT8, exact=symmetric(Range(stated.minimum, top)))
    return Demand(INT8, symmetric=True, file_range=False)


def state_type(range_: Range, on_ne16: bool) -> Affine:
    """Return the type of an LSTM's output and recurrent state.

    NE16: uint8 with zero point 128 and narrow, S = max|range| / 127. SQ8: int8 symmetric.
    """
    if not on_ne16:
        return symmetric(range_)
    largest = np.maximum(np.abs(range_.minimum), np.abs(range_.maximum))
    scale = np.asarray(largest / largest.dtype.type(127))
    return Affine(scale, np.array([128], np.int64), None, 8, False, narrow_range=True)


def pool_codes(unit: Unit, bits: int) -> Codes | None:
    """Return the integer type that a pool standing alone works in; None for other moves, which work in any."""
    if unit.operator == "reduce_max":
        return INT8
    if not unit.operator.endswith("_pool_2d"):
        return None
    return Codes(bits, False) if unit.on_ne16 else INT8
