"""ScatterND: updates are combined into data, row of indices by row; then M / 2^N (docs/rules/aipu/operators.md).

ADD, MAX, MIN, NONE: (d + zp_d) * k_d and (u + zp_u) * k_u on a common scale, as Eltwise with k of at most 14 bits (13
if an input has 16), both halved until they fit the activation's width. MUL: the product of d' = (d + zp_d) * M_0 and u'
= (u + zp_u) * M_1 is shifted by N_1 at each update, the end by N_0. Each combination is limited to 32 bits. At 16 bits
the last step rounds down.

ScatterElements: an index along one axis for each element of the updates; k of 15 bits before it is halved. Data and
updates on the common scale are limited to as many bits as both have; the last step rounds half to even. MUL is not
taken.

Source: Compass Optimizer, ops/scatter_nd.py, scatter_elements.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.eltwise import common_scale, imported_pair
from tflq.interpreter.kernels.aipu.imported import imported_numbers, multiplier_bits
from tflq.interpreter.kernels.aipu.multiplier import LARGEST, Multiplier, OutputCodes, codes_of, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, is_signed, is_wide, offset_of, scale_of
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.operands.movable import equal_samples
from tflq.interpreter.registry import Kernel

_COMBINE: dict[str, Callable[[Integers, Integers], Integers]] = {
    "ADD": np.add,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "MUL": np.multiply,
    "NONE": lambda _, update: update,
}
METHODS = tuple(_COMBINE)
USUAL_BITS, NARROW_BITS = 14, 13


@dataclass(frozen=True, eq=False)
class ScatterParams:
    """The params of one scatter.

    Attributes:
        method: ADD, MAX, MIN, MUL or NONE.
        offsets: zp of data and updates.
        factors: Factors of data and updates.
        step_shift: bits by which each product of MUL is shifted.
        rescale: M and N of the end.
        limits: Limits of each combination.
        rounds_down: whether the steps round down.
        codes: Quantized values of the output.
        side_limits: Limits of data and updates on the common scale; None for none.
        axis: Axis of ScatterElements, after the sample axis.
    """

    method: str
    offsets: tuple[int, int]
    factors: tuple[int, int]
    step_shift: int
    rescale: Multiplier
    limits: tuple[int, int]
    rounds_down: bool
    codes: OutputCodes
    side_limits: tuple[int, int] | None = None
    axis: int = 0

    def round_product(self, total: Integers, rescale: Multiplier) -> Doubles:
        """Return total * M * 2^-N, rounded half to even, or down."""
        if not self.rounds_down:
            return rescale.apply(total)
        down: Doubles = np.floor(total.astype(np.float64) * rescale.m * np.exp2(-rescale.n.astype(np.float64)))
        return down


def lower(node: Node, operands: Operands) -> ScatterParams:
    """Decide the factors, M and N.

    Raises:
        UnsupportedError: another reduction.
    """
    method = require_choice(node, "reduction", METHODS, "NONE")
    data, updates, output = operands.input(0), operands.input(2), operands.output()
    decide = _products if method == "MUL" else _common
    factors, step_shift, multiplier = decide(node, data, updates, output)
    limits = (-(1 << 31), (1 << 31) - 1) if is_signed(output) else (0, (1 << 32) - 1)
    offsets = (offset_of(data), offset_of(updates))
    rounds_down = is_wide(output)
    return ScatterParams(method, offsets, factors, step_shift, multiplier, limits, rounds_down, codes_of(output))


def run(params: ScatterParams, data: Array, indices: Array, updates: Array) -> tuple[Array, ...]:
    """Run ScatterND: quantized [S, *shape], indices [S, *rows, r], quantized [S, *rows, *shape[r:]] -> quantized [S.

    *shape].
    """
    data, indices, updates = equal_samples(data, indices, updates)
    outer = np.array(data.shape[1 : indices.shape[-1] + 1], np.int64)
    places = indices.astype(np.int64)
    places = np.minimum(np.where(places < 0, places + outer, places), outer - 1)
    strides = np.append(np.cumprod(outer[::-1])[-2::-1], 1)
    rows = (places * strides).sum(axis=-1).reshape(len(data), -1)
    sides = [
        (x.astype(np.int64) + zp) * k for x, zp, k in zip((data, updates), params.offsets, params.factors, strict=True)
    ]
    if params.side_limits is not None:
        sides = [np.clip(side, *params.side_limits) for side in sides]
    total = sides[0].reshape(len(data), int(outer.prod()), -1)
    pieces = sides[1].reshape(len(data), rows.shape[1], -1)
    samples = np.arange(len(data))
    for row in range(rows.shape[1]):
        combined = _COMBINE[params.method](total[samples, rows[:, row]], pieces[:, row])
        if params.method == "MUL":
            step = Multiplier(np.ones(1, np.int64), np.array([params.step_shift]))
            combined = params.round_product(combined, step).astype(np.int64)
        total[samples, rows[:, row]] = np.clip(combined, *params.limits)
    return (params.codes.store(params.round_product(total.reshape(data.shape), params.rescale)),)


def lower_elements(node: Node, operands: Operands) -> ScatterParams:
    """Decide the factors, M and N of ScatterElements.

    Raises:
        UnsupportedError: MUL (its shifts are not verified by any test case); another reduction.
    """
    require_choice(node, "reduction", tuple(m for m in METHODS if m != "MUL"), "NONE")
    params, data, updates = lower(node, operands), operands.input(0), operands.input(2)
    bits, signed = bits_of(data) + bits_of(updates), is_signed(operands.output())
    limits = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    axis = node.attributes.integer("axis") % len(data.shape) + 1
    return replace(params, side_limits=limits, rounds_down=False, axis=axis)


def run_elements(params: ScatterParams, data: Array, indices: Array, updates: Array) -> tuple[Array, ...]:
    """Run ScatterElements: quantized [S, *shape], indices [S, *rows], quantized [S, *rows] -> quantized [S, *shape]."""
    places: list[Integers] = list(np.indices(indices.shape, dtype=np.int64)[1:])
    places[params.axis - 1] = indices.astype(np.int64)
    return run(params, data, np.stack(places, axis=-1), updates)


_RULE = "updates are combined into data on a common scale, then M / 2^N"
_SOURCE = "Compass Optimizer, ops/scatter_nd.py, scatter_elements.py; docs/rules/aipu/operators.md"
_Decision = tuple[tuple[int, int], int, Multiplier]


def _common(node: Node, data: Tensor, updates: Tensor, output: Tensor) -> _Decision:
    bits = bits_of(output)
    given = imported_pair(node)
    if given is not None:
        factors, multiplier = given
    else:
        wide = 16 in (bits_of(data), bits_of(updates))
        limit = (1 << (NARROW_BITS if wide else USUAL_BITS)) - 1 if node.operator == "scatter_nd" else LARGEST
        method = node.attributes.text("reduction", "NONE")
        factors, multiplier = common_scale(method, data, updates, output, multiplier_bits(node, output), limit)
        factors, multiplier = _halve_factors(factors, multiplier, bits)
    return factors, 0, multiplier


def _products(node: Node, data: Tensor, updates: Tensor, output: Tensor) -> _Decision:
    bits = bits_of(output)
    given, step = imported_pair(node), imported_numbers(node, "step_shift")
    if given is not None and step is not None:
        return given[0], int(step[0]), given[1]
    ratios = (scale_of(output) / scale_of(data), np.float32(1) / scale_of(updates))
    (m0, n0), (m1, n1) = ((f.first_m, f.first_n) for f in (find_multiplier(r, bits) for r in ratios))
    return (m0, m1), n1, Multiplier(np.ones(1, np.int64), np.array([n0]))


def _halve_factors(factors: tuple[int, int], multiplier: Multiplier, bits: int) -> tuple[tuple[int, int], Multiplier]:
    """Return both factors below 2^bits, halved half to even, and the shift that makes up for it."""
    a, b = factors
    shift = multiplier.n
    while max(a, b) >= 1 << bits:
        a, b, shift = round(a / 2), round(b / 2), shift - 1
    return (a, b), Multiplier(multiplier.m, shift)


KERNELS = {
    "scatter_elements": Kernel(lower_elements, run_elements, _RULE, _SOURCE),
    "scatter_nd": Kernel(lower, run, _RULE, _SOURCE),
}
