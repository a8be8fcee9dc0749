"""What activations take and write: ReLU its own type, curves 32 bits behind a filter, int8 alone (docs/gap9.md, 11)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tflq.converters.gap9.affine_types import real_range, symmetric
from tflq.converters.gap9.types.choice import ALL_FIELDS, INT8, INT16, INT32, UINT8, UINT16, Choice, Codes
from tflq.converters.gap9.types.records import Decision, Form, Operator, Request
from tflq.graph import Affine, Range

Q12 = 2.0**-12
_CURVE_INPUT = Choice(symmetric(real_range(-8, 8)), real_range(-8, 8), ALL_FIELDS)
"""Of sigmoid and tanh that stand alone."""
_FIXED_RANGES = {"logistic": (0.0, 1.0), "tanh": (-1.0, 1.0), "hard_sigmoid": (0.0, 1.0), "relu6": (0.0, 6.0)}


def own_range(operator: Operator) -> Range:
    """Behind a ReLU [0, max], a ReLU6 [0, 6], a sigmoid [0, 1], a tanh [-1, 1], in float64; else the file's."""
    stated = operator.out_ranges[0]
    if operator.name == "relu":
        return real_range(0.0, float(stated.maximum[0]))
    return real_range(*_FIXED_RANGES[operator.name]) if operator.name in _FIXED_RANGES else stated


def rectifier_forms(operator: Operator) -> tuple[Form, ...]:
    """Return the forms of RELU and RELU6: unsigned on NE16, then signed; with 16-bit features signed comes first."""
    wide = operator.on_ne16 and operator.bits == 16
    kinds = (INT16, UINT16) if wide else (UINT8, INT8)[not operator.on_ne16 :]
    return tuple(Form(frozenset({kind, INT32}), frozenset({kind}), partial(_rectifier, codes=kind)) for kind in kinds)


def _rectifier(r: Request, codes: Codes) -> Decision:
    """Its own range, symmetric where what arrives has Z = 0; one type, a demand's if there is one."""
    is_symmetric = codes.signed and r.first(codes).zero_point == 0
    taken = r.demands[0] or Choice.made(own_range(r.operator), codes, is_symmetric)
    return Decision((taken,), (taken,))


def curve_forms(operator: Operator) -> tuple[Form, ...]:
    """Return the forms of a curve: unsigned ones on NE16 behind a filter, no global pool; hard ones prefer int8.

    Alone: int8, which a hard swish on NE16 leaves for a uint8 demand whose zero point is 0; among 16-bit features
    int16, and a hard one uint16 first. A leaky ReLU keeps int8 there, but for NNTool's flaw (17.22). NNTool's others
    take unsigned types on NE16, too, which are wrong (17.23).
    """
    wide = operator.on_ne16 and operator.bits == 16
    signed = INT16 if wide and (operator.behind or operator.name != "leaky_relu" or operator.as_nntool) else INT8
    if operator.name in ("hard_swish", "hard_sigmoid") or not operator.behind:
        sources = frozenset({INT8, INT16, INT32})
    else:
        sources = frozenset({signed, INT32})
    unsigned_sources = sources if operator.name.startswith("hard") else frozenset({operator.unsigned, INT32})
    forms = [Form(sources, frozenset({signed}), partial(_curve, codes=signed))]
    unsigned = operator.unsigned
    if operator.on_ne16 and (operator.behind_filter or (operator.behind and operator.name.startswith("hard"))):
        second = Form(unsigned_sources, frozenset({unsigned}), partial(_curve, codes=unsigned))
        forms.insert(len(forms) if operator.name.startswith("hard") and not wide else 0, second)
    elif operator.name in ("hard_swish", "hard_sigmoid") and operator.on_ne16:
        forms.insert(0 if wide else 1, Form(sources, frozenset({unsigned}), partial(_curve, codes=unsigned)))
    elif operator.as_nntool and operator.on_ne16 and not operator.behind:
        forms.insert(0, Form(frozenset({unsigned}), frozenset({unsigned}), partial(_unsigned_curve, codes=unsigned)))
    return tuple(forms)


def _curve(r: Request, codes: Codes) -> Decision | None:
    """Behind a filter: the input is int32 in the scale of the curve; alone: int8 of a fixed or its own scale."""
    operator = r.operator
    middle = codes.signed or operator.name.startswith("hard")
    written = r.demands[0] or Choice.made(own_range(operator), codes, middle)
    if operator.behind:
        return Decision((_wide_input(operator, written),), (written,))
    wide = operator.bits == 16 and operator.on_ne16 and (r.given[0] is None or r.given[0].codes == INT16)
    source = _lone_input(operator, written, INT16 if wide else INT8)
    fits = r.demands[0] is None or written.zero_point == source.zero_point
    return Decision((source,), (written,)) if fits else None


def _wide_input(operator: Operator, written: Choice) -> Choice:
    """2^-12; a leaky ReLU: the output's; hard swish and hard sigmoid: 6 / 127, or what the range needs."""
    scale = np.full(1, Q12)
    stated = operator.in_ranges[0]
    if operator.name == "leaky_relu":
        scale = written.affine.scale
    elif operator.name in ("hard_swish", "hard_sigmoid"):
        widest = max(abs(float(stated.maximum[0])) / ((1 << 31) - 1), abs(float(stated.minimum[0])) / (1 << 31))
        scale = np.full(1, max(widest, 6.0 / ((1 << (written.affine.bits - 1)) - 1)))
    return Choice(Affine(scale, np.zeros(1, np.int64), None, 32, True), stated)


def _unsigned_curve(r: Request, codes: Codes) -> Decision | None:
    """NNTool's: a sigmoid or tanh demands S = 2^-12, Z = 2^bits, a leaky ReLU the output's scale, Z = 0."""
    written = r.demands[0] or Choice.made(own_range(r.operator), codes, False)
    scale, zero_point = (
        (written.affine.scale, 0) if r.operator.name == "leaky_relu" else (np.full(1, Q12), 1 << codes.bits)
    )
    taken = Affine(scale, np.full(1, zero_point), None, codes.bits, False)
    fits = r.demands[0] is None or written.zero_point == zero_point
    return Decision((Choice(taken, written.range, ALL_FIELDS, False),), (written,)) if fits else None


def _lone_input(operator: Operator, written: Choice, hard: Codes) -> Choice:
    """Sigmoid, tanh: int8, [-8, 8]; leaky ReLU: int8, the output's scale; hard: that type, its range to 6 or more."""
    if operator.name in ("logistic", "tanh"):
        return _CURVE_INPUT
    if operator.name == "leaky_relu":
        return replace(written, affine=replace(written.affine, bits=8), forced=ALL_FIELDS)
    if operator.name == "hard_sigmoid":
        return Choice.made(real_range(-3.0, 6.0), hard, True, ALL_FIELDS)
    stated = operator.in_ranges[0]
    top = np.maximum(stated.maximum, stated.maximum.dtype.type(6))
    return Choice.made(Range(stated.minimum, top), hard, True, ALL_FIELDS)
