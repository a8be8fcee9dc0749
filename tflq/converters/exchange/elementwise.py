"""Operators on single elements."""

from __future__ import annotations

import math

import numpy as np

from tflq.converters.exchange.emitter import BOOL, FLOAT32, Emitter, Rule, Value
from tflq.errors import UnsupportedError


def unary(kind: str) -> Rule:
    """Return the rule of an operator of ONNX with one operand."""
    return lambda e: e.result(e.add(kind, [e.at(0)]))


def pair(kind: str) -> Rule:
    """Return the rule of an operator of ONNX with two operands that broadcast."""
    return lambda e: e.result(e.pair(kind, *e.together((0, 1))))


def compared(kind: str) -> Rule:
    """Return the rule of a comparison."""
    return lambda e: e.result(e.pair(kind, *e.together((0, 1)), dtype=BOOL))


def composed(*kinds: str) -> Rule:
    """Return the rule of an operator that is several of one operand, one behind the other."""

    def rule(e: Emitter) -> None:
        value = e.at(0)
        for kind in kinds:
            value = e.add(kind, [value])
        e.result(value)

    return rule


def clamp(e: Emitter) -> None:
    """RELU and its kin: Relu or Clip."""
    e.result(e.clamped(e.at(0), e.node.operator))


def not_equal(e: Emitter) -> None:
    """NOT_EQUAL: Not of Equal."""
    e.result(e.add("Not", [e.pair("Equal", *e.together((0, 1)), dtype=BOOL)]))


def cast(e: Emitter) -> None:
    """CAST to the type of the output."""
    e.result(e.cast(e.at(0), e.output().dtype.storage))


def square(e: Emitter) -> None:
    """SQUARE: x * x."""
    x = e.at(0)
    e.result(e.pair("Mul", x, x))


def squared_difference(e: Emitter) -> None:
    """SQUARED_DIFFERENCE: (a - b) * (a - b)."""
    difference = e.pair("Sub", *e.together((0, 1)))
    e.result(e.pair("Mul", difference, difference))


def add_n(e: Emitter) -> None:
    """ADD_N: sums from left to right."""
    values = e.together(range(len(e.node.inputs)))
    total = values[0]
    for value in values[1:]:
        total = e.pair("Add", total, value)
    e.result(total)


def floor_mod(e: Emitter) -> None:
    """FLOOR_MOD: the remainder with the divisor's sign. Of reals: fmod, plus y where the signs differ."""
    x, y = e.together((0, 1))
    e.result(_floor_mod(e, x, y))


def _floor_mod(e: Emitter, x: Value, y: Value) -> Value:
    if x.dtype != FLOAT32 or e.has("FloorMod"):
        return e.pair("FloorMod" if e.has("FloorMod") else "Mod", x, y)
    shape = np.broadcast_shapes(x.shape, y.shape)
    rest = e.add("Mod", [x, y], shape, fmod=1)
    zero = e.like(x, "zero", 0)
    signs = e.pair("Xor", *(e.pair("Less", v, zero, dtype=BOOL) for v in (rest, y)))
    differs = e.pair("And", signs, e.add("Not", [e.pair("Equal", rest, zero, dtype=BOOL)]))
    return e.add("Where", [differs, e.pair("Add", rest, y), rest], shape, x.dtype)


def floor_div(e: Emitter) -> None:
    """FLOOR_DIV: floor(x / y); of integers (x - floor_mod(x, y)) / y, which divides without a rest."""
    x, y = e.together((0, 1))
    if x.dtype == FLOAT32:
        e.result(e.add("Floor", [e.pair("Div", x, y)]))
    else:
        e.result(e.pair("Div", e.pair("Sub", x, _floor_mod(e, x, y)), y))


def atan2(e: Emitter) -> None:
    """ATAN2: a = atan(|y| / |x|), pi - a to the left of the axis, with the sign of y; zeros have signs, too."""
    y, x = e.together((0, 1))
    height, width = e.add("Abs", [y]), e.add("Abs", [x])
    angle = e.add("Atan", [e.pair("Div", height, width)])
    numbers = (("zero", 0), ("eighth", math.pi / 4), ("half", math.pi))
    zero, eighth, half = (e.like(x, name, v) for name, v in numbers)
    angle = _where(e, e.pair("Equal", height, width, dtype=BOOL), eighth, angle)
    angle = _where(e, e.pair("Equal", height, zero, dtype=BOOL), zero, angle)
    angle = _where(e, _is_negative(e, x), e.pair("Sub", half, angle), angle)
    e.result(_where(e, _is_negative(e, y), e.add("Neg", [angle]), angle))


def _where(e: Emitter, condition: Value, chosen: Value, other: Value) -> Value:
    shape = np.broadcast_shapes(condition.shape, chosen.shape, other.shape)
    return e.add("Where", [condition, chosen, other], shape, chosen.dtype, condition.is_first)


def _is_negative(e: Emitter, x: Value) -> Value:
    """Return x < 0, or 1 / x < 0 for the zero with a sign."""
    zero, inverse = e.like(x, "zero", 0), e.pair("Div", e.like(x, "one", 1), x)
    return e.pair("Or", *(e.pair("Less", v, zero, dtype=BOOL) for v in (x, inverse)))


def gelu(e: Emitter) -> None:
    """GELU: x / 2 * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) for erf(x / sqrt 2)."""
    x, approximate = e.at(0), e.node.attributes.boolean("approximate", False)
    if e.has("Gelu"):
        e.result(e.add("Gelu", [x], approximate="tanh" if approximate else "none"))
        return
    if approximate:
        cube = e.pair("Mul", e.pair("Mul", x, x), x)
        inner = e.pair("Add", x, e.pair("Mul", cube, e.like(x, "cubic", 0.044715)))
        gate = e.add("Tanh", [e.pair("Mul", inner, e.like(x, "factor", math.sqrt(2 / math.pi)))])
    else:
        gate = e.add("Erf", [e.pair("Mul", x, e.like(x, "factor", math.sqrt(0.5)))])
    half = e.pair("Mul", x, e.like(x, "half", 0.5))
    e.result(e.pair("Mul", half, e.pair("Add", gate, e.like(x, "one", 1.0))))


def select(e: Emitter) -> None:
    """SELECT, SELECT_V2: Where. A condition of SELECT with one axis chooses whole entries of the first."""
    condition, chosen = e.tensor(e.node.inputs[0]), e.tensor(e.node.inputs[1])
    if e.node.operator == "select" and len(condition.shape) == 1 and len(chosen.shape) > 1:
        mask = e.reshaped(e.plain(0), (*condition.shape, *(1,) * (len(chosen.shape) - 1)))
        values = [mask, e.plain(1), e.plain(2)]
    else:
        values = e.together((0, 1, 2))
    mask, chosen_value, other = values
    if chosen_value.dtype == BOOL:  # which onnxruntime's Where does not take
        rest = e.pair("And", e.add("Not", [mask]), other)
        found = e.pair("Or", e.pair("And", mask, chosen_value), rest)
    else:
        shape = np.broadcast_shapes(*(v.shape for v in values))
        found = e.add("Where", values, shape, chosen_value.dtype, any(v.is_first for v in values))
    e.result(found if found.rank == len(e.output().shape) else e.reshaped(found, e.output().shape))


def where(e: Emitter) -> None:
    """WHERE with one operand: NonZero, [rank, count] -> [count, rank]."""
    x = e.plain(0)
    most = math.prod(x.shape)  # so many as the values say
    found = e.add("NonZero", [x], (x.rank, most), np.dtype(np.int64), first=False)
    e.result(e.transposed(found, (1, 0)))


def real_only(rule: Rule) -> Rule:
    """Return a rule that refuses other types than float32."""

    def checked(e: Emitter) -> None:
        if e.at(0).dtype != FLOAT32:
            raise UnsupportedError(f"'{e.tensor(e.node.inputs[0]).name}' is {e.at(0).dtype}; float32 can be written")
        rule(e)

    return checked


def leaky_relu(e: Emitter) -> None:
    """LEAKY_RELU."""
    e.result(e.add("LeakyRelu", [e.at(0)], alpha=e.node.attributes.real("alpha")))


def prelu(e: Emitter) -> None:
    """PRELU, slopes shaped [C, 1, 1] beside an image."""
    x, slopes = e.together((0, 1))
    e.result(e.add("PRelu", [x, slopes]))


def hard_swish(e: Emitter) -> None:
    """HARD_SWISH: x * HardSigmoid(x); ONNX has the operator HardSwish since opset 14."""
    x = e.at(0)
    if e.has("HardSwish"):
        e.result(e.add("HardSwish", [x]))
        return
    e.result(e.pair("Mul", x, e.add("HardSigmoid", [x], alpha=1.0 / 6.0, beta=0.5)))


def softmax(e: Emitter) -> None:
    """SOFTMAX along the channels; a beta other than 1 is multiplied in front of it."""
    x, beta = e.at(0), e.node.attributes.real("beta", 0.0)
    if beta != 1.0:
        x = e.pair("Mul", x, e.like(x, "beta", beta), label="scaled")
    e.result(e.add("Softmax", [x], axis=x.axis(-1)))


def same(e: Emitter) -> None:
    """QUANTIZE, DEQUANTIZE: the real value, in the type of the output."""
    e.result(e.at(0))
