"""Layers of two inputs: Eltwise, Div, Pow, SquaredDifference, Logical, Where (docs/rules/aipu/operators.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import Internal, Layer, OutputType, Row, by_range, follows_input, plain
from tflq.converters.aipu.operators.linear import changed_by, unless_rectified
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.translation import Translation
from tflq.graph import Attributes, Graph, Node, Operands, Range
from tflq.interpreter.kernels.aipu.activation import Fused
from tflq.interpreter.kernels.aipu.eltwise import method_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier
from tflq.interpreter.kernels.aipu.pairs_by_table import EXPONENT
from tflq.interpreter.kernels.aipu.real.pairs import EPSILON
from tflq.interpreter.kernels.aipu.scales import is_plain, is_signed

_POWERS = ("log_outputs", "power_outputs", "exp_outputs")


def _pair(node: Node, operands: Operands) -> bool:
    """Unsigned behind a fused rectifier; else signed for a difference, or where an input is."""
    if not unless_rectified(node, operands):
        return False
    return method_of(node) == "SUB" or any(is_signed(t) for t in operands.inputs if t is not None)


def factors_of(layer: ir.Lowered) -> tuple[int, int]:
    """Return what the inputs are multiplied by."""
    found = layer.param("factors")
    assert isinstance(found, tuple)
    return found[0], found[1]


def _emit_pair(layer: ir.Lowered) -> ir.Emitted:
    """M in front of k0 and k1."""
    (found,) = layer.multipliers("rescale")
    keys = ir.factor_keys(ir.ADDITIVE, found, "uint16")
    keys |= {"scale_value": (found.first_m, *factors_of(layer)), "scale_type": ("uint16",) * 3}
    return ir.Emitted(keys=keys)


def read_pair(file: ir.FromFile) -> ir.Params:
    """Return M, N, k0 and k1."""
    found = file.multiplier()
    if found is None or found.m.size != 3:
        return {}
    return {"rescale": Multiplier(found.m[:1], found.n[:1]), "factors": found.m[1:]}


def _changed(layer: ir.Lowered) -> ir.Emitted:
    fused = layer.param("fused")
    assert isinstance(fused, Fused)
    return ir.Emitted(changed=changed_by(fused))


_LEVELS = ir.Computed(_changed)
_COMMON = (ir.Computed(_emit_pair, read_pair), _LEVELS)


def _eltwise(node: Node) -> Sequence[ir.Part]:
    return (ir.Factors(ir.LINEAR), _LEVELS) if method_of(node) == "MUL" else _COMMON


_CHOICE = ir.Factors(ir.CURVED, name="rescales")


def _emit_choice(layer: ir.Lowered) -> ir.Emitted:
    """Both multipliers, whose type is the narrow one where nothing but whole numbers is chosen from."""
    is_whole = all(is_plain(layer.operands.input(place)) for place in (1, 2))
    return replace(_CHOICE, kind="uint8").emit(layer) if is_whole else _CHOICE.emit(layer)


def _squared(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Whole numbers give whole numbers of 32 bits."""
    if all(t is not None and is_plain(t) for t in operands.inputs):
        return (plain(32),)
    return (by_range(operands.output(), False, options),)


def _emit_logical(layer: ir.Lowered) -> ir.Emitted:
    """The factors of both inputs, of comparisons only."""
    factors = layer.param("factors")
    if not isinstance(factors, tuple) or not factors:
        return ir.Emitted()
    return ir.Emitted(keys={"scale_value": factors, "scale_type": ("uint16", "uint16")})


def _read_logical(file: ir.FromFile) -> ir.Params:
    found = file.numbers("scale_value")
    return {} if found is None or found.size != 2 else {"factors": found}


def _pow(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """By the output's range where the exponent is one constant; else by that of exp(p * log|x|), always symmetric."""
    x, signed = operands.input(0), is_signed(operands.input(0))
    if EXPONENT in node.attributes:
        exponent = node.attributes.real(EXPONENT)
        signed = signed and exponent % 2 != 0
        if is_plain(x) and exponent == np.rint(exponent):
            return (plain(options.activation_bits, signed),)
        return (by_range(operands.output(), signed, options),)
    if is_plain(x) and is_plain(operands.input(1)):
        return (plain(options.activation_bits, signed),)
    power = operands.intermediates[2]
    assert power is not None
    return (by_range(power, signed, replace(options, restricted=True), True),)


def _emit_exponent(layer: ir.Lowered) -> ir.Emitted:
    return ir.Emitted(added={EXPONENT: layer.node.attributes.real(EXPONENT)})


_BY_CONSTANT = (ir.Lut("lut_log", "first"), ir.Factors(ir.CURVED, "uint8"), ir.Computed(_emit_exponent))
_BY_LOGARITHM = (ir.Lut("lut_log", "first", np.int16), ir.Lut("lut_exp", "second"), ir.Factors(ir.CURVED))


def _power(node: Node) -> Sequence[ir.Part]:
    return _BY_CONSTANT if EXPONENT in node.attributes else _BY_LOGARITHM


def _eltwise_layer(type_name: str) -> Layer:
    return Layer(type_name, _pair, emitted=_eltwise, keeps_whole=True, has_width=True)


def map_pair(work: Translation, node: Node) -> None:
    """Map ADD, SUB, MUL, MAXIMUM, MINIMUM."""
    work.append(node, node.operator, {}, reads_all=True)


def map_sum_of_many(work: Translation, node: Node) -> None:
    """One Eltwise for each operand but the first; those between take the range of the whole."""
    (t,) = node.outputs
    total, *others, last = (work.operand(i) for i in node.inputs)
    for number, other in enumerate(others):
        suffix = f"_expand_{number}" if number else ""
        (total,) = work.layer(node, work.name_of(t) + suffix, "add", (total, other), (work.inner(t),))
    work.add(node, "add", (total, last), (t,), suffix=f"_expand_{len(others)}" if others else "")


def map_comparison(work: Translation, node: Node) -> None:
    """NOT_EQUAL is named <name>_equal. Of LESS_EQUAL and GREATER_EQUAL by a constant LESS, EQUAL and OR are left."""
    method, (t,) = node.operator.upper().removeprefix("LOGICAL_"), node.outputs
    inputs = [work.operand(i) for i in node.inputs]
    parts = method.split("_")
    shapes = {work.shape(i) for i in node.inputs}
    if parts[-1] != "EQUAL" or len(parts) == 1:
        work.add(node, "logical", inputs, (t,), {"method": method})
    elif parts[0] == "NOT" or len(shapes) == 1:
        work.add(node, "logical", inputs, (t,), {"method": method}, suffix="_equal" if parts[0] == "NOT" else "")
    else:
        name = work.name_of(t)
        either = [
            work.layer(node, f"{name}_{part.lower()}", "logical", inputs, (work.top(t),), {"method": part})[0]
            for part in parts
        ]
        work.add(node, "logical", either, (t,), {"method": "OR"})


def map_logical_not(work: Translation, node: Node) -> None:
    """Map LOGICAL_NOT."""
    work.append(node, "logical", {}, Attributes({"method": "NOT"}))


def map_quotient(work: Translation, node: Node) -> None:
    """Map DIV."""
    work.add(node, "div", [work.operand(t) for t in node.inputs], node.outputs)


def map_floored_quotient(work: Translation, node: Node) -> None:
    """Map FLOOR_DIV: a Div and a Floor."""
    inputs, (t,) = [work.operand(t) for t in node.inputs], node.outputs
    (quotient,) = work.layer(node, work.name_of(t), "div", inputs, (work.inner(t),))
    work.add(node, "floor", (quotient,), node.outputs, suffix="_floor")


def map_remainder(work: Translation, node: Node) -> None:
    """Return a - floor(a / b) * b; what lies between has the range that those of a, b and the result allow."""
    (t,) = node.outputs
    a, b = (work.operand(i) for i in node.inputs)
    name, top = work.name_of(t), work.top(t)
    dividend, divisor, rest = (work.limits(i) for i in (*node.inputs, t))
    quotients = replace(top, range=_reach(np.divide, dividend, divisor))
    (quotient,) = work.layer(node, name, "div", (a, b), (quotients,))
    (whole,) = work.layer(node, f"{name}_floor", "floor", (quotient,), (quotients,))
    products = replace(top, range=_reach(np.subtract, dividend, rest))
    (product,) = work.layer(node, f"{name}_mul", "mul", (whole, b), (products,))
    work.add(node, "sub", (a, product), (t,), suffix="_sub")


def _reach(operation: np.ufunc, a: tuple[float, float] | None, b: tuple[float, float] | None) -> Range | None:
    """Return the range that an operation of two numbers has, monotone in both; None where one is not known."""
    if a is None or b is None:
        return None
    ends = operation.outer(np.asarray(a, np.float32), np.asarray(b, np.float32))
    return Range(*(np.asarray([limit], np.float32) for limit in (ends.min(), ends.max())))


def refuse_remainder(graph: Graph, node: Node) -> str:
    """Refuse a divisor that may be 0: the quotient then has no range."""
    divisor = graph.tensors[node.inputs[1]]
    if divisor.data is not None and divisor.data.size:
        low, high = float(divisor.data.min()), float(divisor.data.max())
    elif divisor.range is not None:
        low, high = float(divisor.range.minimum.min()), float(divisor.range.maximum.max())
    else:
        return ""
    if low * high > 0:
        return ""
    return f"its divisor is {low:g} to {high:g}; allowed is a range without 0: add to it, or give a range (--ranges)"


def map_squared_difference(work: Translation, node: Node) -> None:
    """The square of a difference, which the Parser joins again where it may."""
    inputs, name = [work.operand(t) for t in node.inputs], work.name_of(node.outputs[0])
    (difference,) = work.layer(
        node, name, "sub", inputs, (replace(work.top(node.outputs[0]), range=work.difference(node)),)
    )
    work.add(node, "square", (difference,), node.outputs, suffix="_pow")


def map_select(work: Translation, node: Node) -> None:
    """Map SELECT, SELECT_V2."""
    work.append(node, "where", {}, reads_all=True)


def map_pow(work: Translation, node: Node) -> None:
    """The exponent is repeated to the shape of the base. Bounds of log|x| and p log|x|, where no run says more."""
    work.append(node, "pow", {}, reads_all=True)
    x, p, y = (work.limits(t) for t in (*node.inputs, *node.outputs))
    bounds: dict[str, tuple[float, float] | None] = dict.fromkeys(_POWERS)
    if x is not None and p is not None and y is not None:
        smallest = max(x[0], -x[1], 0.0)
        logs = [float(np.log(v + float(EPSILON))) for v in (smallest, max(map(abs, x)))]
        products = [a * b for a in logs for b in p]
        bounds = {
            "log_outputs": (logs[0], logs[1]),
            "power_outputs": (min(products), max(products)),
            "exp_outputs": y,
        }
    work.add_internal(node.outputs[0], bounds)


LAYERS = {
    "add": _eltwise_layer("Add"),
    "div": Layer("Div", follows_input, emitted=(ir.Lut(dtype=np.uint16), ir.Factors(ir.TYPED))),
    "eltwise": _eltwise_layer("Eltwise"),
    "logical": Layer(
        "Logical",
        types=lambda _, o, __: (plain(8),) * len(o.outputs),
        emitted=(ir.Computed(_emit_logical, _read_logical),),
    ),
    "mul": _eltwise_layer("Mul"),
    "pow": Layer(
        "Pow",
        types=_pow,
        emitted=_power,
        internal=Internal(_POWERS),
        needs_range=True,
    ),
    "squared_difference": Layer(
        "SquaredDifference", types=_squared, emitted=(ir.Factors(ir.CURVED, "uint16", "rescales"),), needs_range=True
    ),
    "sub": _eltwise_layer("Sub"),
    "where": Layer("Where", follows_input, emitted=(ir.Computed(_emit_choice, _CHOICE.read),), keeps_whole=True),
}

# fmt: off
DOCS = (
    Row("4.23", "Div", "sign(b') * a' * t(abs b'), t[i] = RNE(65535 / i), t[0] = 0; r = s_y * s_b / (s_a * 65535)",
        "g r", tflite="DIV; FLOOR_DIV with Floor; FLOOR_MOD with Floor, Mul, Sub",
        restriction="at 16 bits quotients of few units: Compass's table; FLOOR_MOD: a divisor whose range has no 0"),
    Row("4.24 to 4.26, 4.28", "ElementwiseAdd, Max, Min, Sub", "(k0 * (a + zp_a) op k1 * (b + zp_b)) * M * 2^-N, k0 "
        ": k1 = s_b : s_a in 15 bits; equal types: k = 1, and SUB, MAX, MIN forget s_y", "g r v",
        layer="Eltwise, Add, Sub", tflite="ADD, ADD_N, MAXIMUM, MINIMUM, SUB",
        signed="signed where an input is, SUB always; unsigned with RELU, RELU6",
        restriction="MAX, MIN: equal shapes; fused RELU, RELU6"),
    Row("4.27", "ElementwiseMul", "(a + zp_a)(b + zp_b), r = s_y / (s_a * s_b)", "g r v", layer="Eltwise MUL, Mul",
        tflite="MUL", signed="as Eltwise", restriction="fused RELU, RELU6"),
    Row("4.41", "Logical", "(a + zp_a) * k_a against (b + zp_b) * k_b, k = int(m / s * f), f up to 8192; AND, OR, "
        "XOR, NOT of quantized values", "g r",
        tflite="EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT",
        signed="uint8, s = 1", restriction="equal shapes or a constant"),
    Row("4.51", "Pow", "one constant exponent: table; else t_exp(RNE(t_log(x) * (p + zp_p) * M * 2^-N)) * sign(x + "
        "zp_x)^(p + zp_p), logarithm and product in int16", "g r", tflite="POW",
        signed="one exponent: signed where x is and it is odd; else as x", restriction="equal shapes or a constant"),
    Row("4.79", "Where",
        "RNE((x_i + zp_i) * M_i * 2^-N_i) - zp_y of the chosen one, r_i = s_y / s_i; plain integers keep r = 1",
        "g r", tflite="SELECT, SELECT_V2", signed="signed where a value is",
        restriction="equal shapes or a constant; WHERE of one input is refused, as the Optimizer does"),
    Row("-", "(squared difference)",
        "both on the smaller scale with 15 bits, RNE(clamp32((x_0 - x_1)^2) * M * 2^-N) - zp_y", "r",
        layer="SquaredDifference", tflite="SQUARED_DIFFERENCE", signed="unsigned", restriction="no golden case"),
)
# fmt: on
