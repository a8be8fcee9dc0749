"""What one operator takes and writes: its forms, the first that matches decides.

Source: docs/rules/gap9/types.md, docs/rules/gap9/operators.md.

A form accepts certain integer types for inputs and demands. Constants match always, and so does what is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tflq.converters.gap9.affine_types import real_range, symmetric
from tflq.converters.gap9.operators import CURVES, EXPRESSION, LSTM, RECTIFIERS
from tflq.converters.gap9.types.records import (
    ALL_FIELDS,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    Choice,
    Codes,
    Decision,
    Form,
    Operator,
    Request,
)
from tflq.graph import Affine, Range
from tflq.graph.operators import LINEAR_OPERATORS

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
        widest = symmetric(real_range(float(stated.minimum[0]), float(stated.maximum[0])), 32).scale
        scale = np.maximum(widest, symmetric(real_range(0, 6), written.affine.bits).scale)
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


SOFTMAX_OUT = Affine(np.array([2.0**-15]), np.zeros(1, np.int64), None, 16, True)
SOFTMAX_OUT_8 = Affine(np.array([2.0**-7]), np.zeros(1, np.int64), None, 8, True)
_UNIT = real_range(-1.0, 1.0)
ANY = frozenset({INT8, UINT8, INT16, UINT16})


def decide(operator: Operator, arrived: Sequence[Choice], demands: Sequence[Choice | None]) -> Decision | None:
    """Return what an operator decides, None if it cannot.

    Tried in this order: inputs and demands, inputs alone, neither. The first matching form of a try decides.
    """
    forms, nobody = forms_of(operator), (None,) * len(demands)
    nothing = (None,) * len(arrived)
    for given, wanted in ((arrived, demands), (arrived, nobody), (nothing, nobody)):
        form = next((f for f in forms if f.matches(given, wanted)), None)
        request = Request(operator, tuple(given), tuple(arrived), tuple(wanted))
        found = None if form is None else form.decide(request)
        if found is not None:
            return found
    return None


def forms_of(operator: Operator) -> tuple[Form, ...]:
    """Return the forms of an operator, the preferred first."""
    name, unsigned = operator.name, operator.unsigned
    if name in LINEAR_OPERATORS:
        if operator.on_ne16:
            return (Form(frozenset({unsigned}), frozenset({*ANY, INT32}), _ne16_filter),)
        return (Form(frozenset({INT8}), frozenset(() if operator.bits == 16 else (INT8, INT32)), _sq8_filter),)
    if name == LSTM:
        return (Form(frozenset({UINT8 if operator.on_ne16 else INT8}), ANY, _lstm),)
    if name in _TABLE:
        return tuple(f for f in _TABLE[name] if operator.on_ne16 or not _needs_ne16(f))
    if name in CURVES:
        return curve_forms(operator)
    if name in RECTIFIERS:
        return rectifier_forms(operator)
    return (_MOVE,)


def _needs_ne16(form: Form) -> bool:
    return form.inputs <= {UINT8, UINT16}


def _ne16_filter(r: Request) -> Decision:
    unsigned = r.operator.unsigned
    source = r.given[0] or Choice.made(r.operator.in_ranges[0], unsigned, False)
    if unsigned == UINT16:
        source = source.widened(r.operator.lost_bits(source.affine.scale))
    return Decision((source,), (r.demands[0] or Choice.made(r.operator.out_ranges[0], unsigned, False),))


def _sq8_filter(r: Request) -> Decision:
    """A padded one insists on the zero point; asymmetric input becomes symmetric on the file's range.

    Among 16-bit features it writes int16, and nothing else that is demanded.
    """
    source, pads = r.first(INT8, r.operator.pads), r.operator.pads
    if pads:
        if not source.is_symmetric:
            source = Choice.made(r.operator.in_ranges[0], INT8, True)
        source = source.insisted("zero_point")
    codes = Codes(r.operator.bits, True)
    return Decision((source,), (r.demands[0] or Choice.made(r.operator.out_ranges[0], codes, False),))


def _pool(r: Request) -> Decision | None:
    """Int8: input and output have one type: a demand's, else symmetric if the pool pads."""
    if r.demands[0] is not None:
        return Decision((r.demands[0],), (r.demands[0],))
    source = r.first(INT8, r.operator.pads)
    found = source.symmetric() if r.operator.pads else source
    return None if found is None else Decision((found,), (found,))


def _unsigned_pool(r: Request) -> Decision | None:
    source, demand = r.first(r.operator.unsigned), r.demands[0]
    if demand is not None:
        if source.forced and source.zero_point != demand.zero_point:
            return None
        source = demand
    return Decision((source,), (source,))


def _mean(r: Request) -> Decision | None:
    """Mean and sum: symmetric input; a demand is taken with the input's zero point, or 0."""
    source, demand = r.first(INT8), r.demands[0]
    if demand is not None and demand.zero_point == source.zero_point:
        return Decision((source,), (demand,))
    found = source.symmetric(INT8)
    if found is None or (demand is not None and demand.zero_point != 0):
        return None
    return Decision((found,), (demand or Choice.made(r.operator.out_ranges[0], INT8, True),))


def _maximum(r: Request) -> Decision:
    """The largest: input and output have one type. NNTool's takes what arrives, whatever is demanded (17.25)."""
    written = r.demands[0] or r.first(INT8)
    return Decision((r.first(INT8) if r.operator.as_nntool else written,), (written,))


def _signed_pair(r: Request, *insisted: str) -> Decision | None:
    """Int8 symmetric everywhere; own inputs keep the range of the type that arrives."""
    sources = []
    for given, arrived in zip(r.given, r.arrived, strict=True):
        source = given.symmetric() if given else Choice.made(arrived.range, INT8, True)
        if source is None:
            return None
        sources.append(source.insisted(*insisted))
    demand = r.demands[0]
    if demand is not None and not demand.is_symmetric:
        return None
    written = demand or Choice.made(r.operator.out_ranges[0], INT8, True)
    return Decision(tuple(sources), (written.insisted(*insisted),))


def _unsigned_sum(r: Request) -> Decision:
    written = r.demands[0] or Choice.made(r.operator.out_ranges[0], UINT8, False)
    return Decision(tuple(g.insisted("dtype") for g in r.arrived), (written.insisted("dtype"),))


def _expression(r: Request) -> Decision:
    """Takes what arrives; writes what is demanded, or int8 symmetric."""
    ranges = r.operator.out_ranges
    written = [d or Choice.made(range_, INT8, True) for d, range_ in zip(r.demands, ranges, strict=True)]
    return Decision(r.arrived, tuple(written))


def _concatenation(r: Request) -> Decision | None:
    given, demand = r.arrived, r.demands[0]
    forced = [g for g in given if g.forced]
    if any(_disagree(a, b, a.forced | b.forced) for a in forced for b in forced):
        return None
    if demand is not None and any(_disagree(demand, g, demand.forced & g.forced) for g in given):
        return None
    if demand is not None and (
        demand.forced & {"zero_point", "scale"}
        or ("dtype" in demand.forced and any(g.codes != demand.codes for g in given))
    ):
        return _all_take(r, demand)
    return _all_take(r, max(given, key=lambda g: g.scale))


def _disagree(a: Choice, b: Choice, fields: frozenset[str]) -> bool:
    return (
        ("dtype" in fields and a.codes != b.codes)
        or ("zero_point" in fields and a.zero_point != b.zero_point)
        or ("scale" in fields and not a.agrees(b))
    )


def _all_take(r: Request, taken: Choice) -> Decision:
    return Decision((taken,) * len(r.arrived), (taken,) * len(r.demands))


def _split(r: Request) -> Decision | None:
    """One type: the input's if anything of it is forced, else the first demand, else the input's."""
    source = r.given[0] or Choice.made(r.arrived[0].range, INT8, True)
    wanted = [d for d in r.demands if d is not None]
    if any(_disagree(a, b, a.forced & b.forced) for a in wanted for b in wanted):
        return None
    return _all_take(r, source if source.forced or not wanted else wanted[0])


def _move(r: Request) -> Decision:
    return _all_take(r, next((d for d in r.demands if d is not None), r.arrived[0]))


def _softmax(r: Request) -> Decision | None:
    """On the tensor's range where inputs were dropped, but behind a concatenation on that of what arrives."""
    codes = Codes(r.operator.bits, True)
    joined = r.given[0] is None and r.operator.behind_concatenation
    source = Choice.made(r.arrived[0].range, codes, True) if joined else r.first(codes).symmetric()
    if source is None:
        return None
    written = SOFTMAX_OUT_8 if r.operator.short and r.operator.bits == 8 else SOFTMAX_OUT
    return Decision((source.power_of_two(),), (Choice(written, _UNIT),))


def _lstm(r: Request) -> Decision:
    on_ne16 = r.operator.on_ne16
    source = r.given[0]
    if source is None or not (on_ne16 or source.is_symmetric):
        source = Choice.made(r.operator.in_ranges[0], UINT8 if on_ne16 else INT8, not on_ne16)
    written = Choice(state_type(r.operator.out_ranges[0], on_ne16), r.operator.out_ranges[0])
    return Decision((source,), (written,))


def state_type(range_: Range, on_ne16: bool) -> Affine:
    """Return the type of an LSTM's output and recurrent state.

    NE16: uint8 with zero point 128 and narrow, S = max|range| / 127. SQ8: int8 symmetric.
    """
    if not on_ne16:
        return symmetric(range_)
    largest = np.maximum(np.abs(range_.minimum), np.abs(range_.maximum))
    scale = np.asarray(largest / largest.dtype.type(127))
    return Affine(scale, np.array([128], np.int64), None, 8, False, narrow_range=True)


_SIGNED, _MEAN_OUT = frozenset({INT8}), frozenset({INT8, INT32})
_MOVE = Form(ANY, ANY, _move)
_POOLS = (Form(frozenset({INT8, INT16}), None, _pool), Form(frozenset({UINT8, UINT16}), None, _unsigned_pool))
_SUMS = (
    Form(_SIGNED, _SIGNED, lambda r: _signed_pair(r, "dtype", "zero_point")),
    Form(frozenset({UINT8}), frozenset({UINT8}), _unsigned_sum),
)
_TABLE: dict[str, tuple[Form, ...]] = {
    "max_pool_2d": _POOLS,
    "average_pool_2d": _POOLS,
    "mean": (Form(_SIGNED, _MEAN_OUT, _mean),),
    "sum": (Form(_SIGNED, _MEAN_OUT, _mean),),
    "reduce_max": (Form(_SIGNED, _MEAN_OUT, _maximum),),
    "add": _SUMS,
    "sub": _SUMS,
    "mul": (Form(_SIGNED, _SIGNED, _signed_pair),),
    EXPRESSION: (Form(ANY, ANY, _expression),),
    "concatenation": (Form(ANY, ANY, _concatenation),),
    "pack": (Form(ANY, ANY, _concatenation),),
    "split": (Form(frozenset({INT8, UINT8}), frozenset({INT8, UINT8}), _split),),
    "split_v": (Form(frozenset({INT8, UINT8}), frozenset({INT8, UINT8}), _split),),
    "unpack": (Form(frozenset({INT8, UINT8}), frozenset({INT8, UINT8}), _split),),
    "softmax": (Form(frozenset({INT8, INT16}), frozenset({INT8, INT16}), _softmax),),
}
