"""Layers of two inputs or more on a common scale: Eltwise, Div, Pow, Logical, Where, Concat (docs/aipu.md, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.descriptor import (
    Internal,
    Layer,
    OutputType,
    Single,
    by_range,
    follows_input,
    like,
    plain,
)
from tflq.converters.aipu.emitted import (
    ADDITIVE,
    CURVED,
    LINEAR,
    TYPED,
    Computed,
    Emitted,
    Factors,
    FromFile,
    Lowered,
    Lut,
    Params,
    Part,
    factor_keys,
)
from tflq.converters.aipu.operators.linear import unless_rectified
from tflq.converters.aipu.options import LayerOptions
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.eltwise import method_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.pairs_by_table import EXPONENT
from tflq.interpreter.kernels.aipu.scales import bits_of, is_plain, is_signed
from tflq.schemas.aipu import Value

_EPSILON = np.finfo(np.float32).eps


def _pair(node: Node, operands: Operands) -> bool:
    """Unsigned behind a fused rectifier; else signed for a difference, or where an input is."""
    if not unless_rectified(node, operands):
        return False
    return method_of(node) == "SUB" or any(is_signed(t) for t in operands.inputs if t is not None)


def _factors(layer: Lowered) -> tuple[int, int]:
    found = layer.param("factors")
    assert isinstance(found, tuple)
    return found[0], found[1]


def _emit_pair(layer: Lowered) -> Emitted:
    """M in front of k0 and k1."""
    (found,) = layer.multipliers("rescale")
    keys = factor_keys(ADDITIVE, found, "uint16")
    keys |= {"scale_value": (found.first_m, *_factors(layer)), "scale_type": ("uint16",) * 3}
    return Emitted(keys=keys)


def _read_pair(file: FromFile) -> Params:
    found = file.multiplier()
    if found is None or found.m.size != 3:
        return {}
    return {"rescale": Multiplier(found.m[:1], found.n[:1]), "factors": found.m[1:]}


_COMMON = (Computed(_emit_pair, _read_pair),)


def _eltwise(node: Node) -> Sequence[Part]:
    return (Factors(LINEAR),) if method_of(node) == "MUL" else _COMMON


def _emit_scatter(layer: Lowered) -> Emitted:
    """As a pair, k of the output's width; MUL has M_0 and M_1, N_0 at the end and N_1 at each update."""
    (found,), kind = layer.multipliers("rescale"), type_of_multiplier(bits_of(layer.operands.output()))
    factors = _factors(layer)
    if layer.param("method") == "MUL":
        keys: dict[str, Value] = {
            "scale_value": (1, *factors),
            "shift_value": (found.first_n, 0, layer.number("step_shift")),
            "scale_type": (kind,) * 3,
            "shift_type": ("int8",) * 3,
        }
        return Emitted(keys=keys)
    keys = factor_keys(ADDITIVE, found, kind)
    keys |= {"scale_value": (found.first_m, *factors), "scale_type": ("uint16", kind, kind)}
    return Emitted(keys=keys)


def _read_products(file: FromFile) -> Params:
    found = file.multiplier()
    if found is None or found.m.size != 3:
        return {}
    one = Multiplier(np.ones(1, np.int64), found.n[:1])
    return {"rescale": one, "factors": found.m[1:], "step_shift": found.n[2:]}


def _scatter(node: Node) -> Sequence[Part]:
    is_product = node.attributes.text("reduction", "NONE") == "MUL"
    return (Computed(_emit_scatter, _read_products if is_product else _read_pair),)


def _scattered(_node: Node, operands: Operands) -> bool:
    return is_signed(operands.input(0)) or is_signed(operands.input(2))


def _squared(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Whole numbers give whole numbers of 32 bits."""
    if all(t is not None and is_plain(t) for t in operands.inputs):
        return (plain(32),)
    return (by_range(operands.output(), False, options),)


def _emit_logical(layer: Lowered) -> Emitted:
    """The factors of both inputs, of comparisons only."""
    factors = layer.param("factors")
    if not isinstance(factors, tuple) or not factors:
        return Emitted()
    return Emitted(keys={"scale_value": factors, "scale_type": ("uint16", "uint16")})


def _read_logical(file: FromFile) -> Params:
    found = file.numbers("scale_value")
    return {} if found is None or found.size != 2 else {"factors": found}


def _concat(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Branches of one type pass it; others take the output's range, as wide as the widest."""
    branches = [t for t in operands.inputs if t is not None]
    if all(like(t) == like(branches[0]) for t in branches):
        return (like(branches[0]),)
    widest = replace(options, activation_bits=max(bits_of(t) for t in branches))
    return (by_range(operands.output(), follows_input(node, operands), widest),)


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


def _pow_values(_node: Node, _operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
    """Return log(|x| + eps), p times it, and its exponential, each rounded to float32.

    Source: Compass Optimizer, ops/pow.py, placeholders.
    """
    x, p = (np.asarray(v, np.float32) for v in inputs)
    logarithm = np.log((np.abs(x) + _EPSILON).astype(np.float64)).astype(np.float32)
    product = (logarithm * p).astype(np.float32)
    return logarithm, product, np.exp(product.astype(np.float64)).astype(np.float32)


def _emit_exponent(layer: Lowered) -> Emitted:
    return Emitted(added={EXPONENT: layer.node.attributes.real(EXPONENT)})


_BY_CONSTANT = (Lut("lut_log", "first"), Factors(CURVED, "uint8"), Computed(_emit_exponent))
_BY_LOGARITHM = (Lut("lut_log", "first", np.int16), Lut("lut_exp", "second"), Factors(CURVED))


def _power(node: Node) -> Sequence[Part]:
    return _BY_CONSTANT if EXPONENT in node.attributes else _BY_LOGARITHM


def _eltwise_layer(type_name: str) -> Layer:
    return Layer(type_name, _pair, emitted=_eltwise, keeps_whole=True, has_width=True)


LAYERS = {
    "add": _eltwise_layer("Add"),
    "concat": Layer("Concat", follows_input, _concat, emitted=(Factors(ADDITIVE, name="rescales"),), has_width=True),
    "div": Layer("Div", follows_input, emitted=(Lut(dtype=np.uint16), Factors(TYPED))),
    "eltwise": _eltwise_layer("Eltwise"),
    "logical": Layer(
        "Logical",
        types=lambda _, o, __: (plain(8),) * len(o.outputs),
        emitted=(Computed(_emit_logical, _read_logical),),
    ),
    "mul": _eltwise_layer("Mul"),
    "pow": Layer(
        "Pow",
        types=_pow,
        emitted=_power,
        internal=Internal(("log_outputs", "power_outputs", "exp_outputs"), _pow_values),
        needs_range=True,
    ),
    "scatter_nd": Layer("ScatterND", _scattered, emitted=_scatter, keeps_whole=True),
    "squared_difference": Layer(
        "SquaredDifference", types=_squared, emitted=(Factors(CURVED, "uint16", "rescales"),), needs_range=True
    ),
    "sub": _eltwise_layer("Sub"),
    "where": Layer("Where", follows_input, emitted=(Factors(CURVED, name="rescales"),), keeps_whole=True),
}
