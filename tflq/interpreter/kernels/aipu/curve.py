"""Functions by table, activations among them, and at 16 bits Cosine and Sine by a period.

Source: docs/rules/aipu/values.md#tables.

Functions by table: Exp, Square, Sqrt, Rsqrt, Reciprocal, Log, Floor, Ceil, Round, Cosine, Sine, BNLL and activations.
Source: Compass Optimizer, ops/activation.py, apply_lut.

Cosine and Sine: a plain table at 8 bits; at 16 a table of one period, read at the place in it.
i = RNE((x + zp_x) * M * 2^-N) mod n, r = n / (2 pi s_x); t[k] = RNE(32767 f(2 pi k / (n - 1))), n a power of two. The
output is symmetric at s_y = 32767.
Source: Compass Optimizer, ops/cosine.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import vector_functions as vectors
from tflq.interpreter.kernels.aipu.exponentials import exponential_of_library, gelu_of_vectors
from tflq.interpreter.kernels.aipu.float_sums import library_of
from tflq.interpreter.kernels.aipu.imported import imported_numbers, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, encode, is_wide, offset_of, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_of
from tflq.interpreter.numerics.transcendental import erf
from tflq.interpreter.registry import Kernel

_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -87.0, 88.0
"""Between them the exponential is a normal float32."""

Function = Callable[[Doubles], Doubles]


def _of_vectors(function: Callable[..., Singles], *parameters: float) -> Function:
    """Wrap a function of PyTorch's vectors, with float32 arguments and results."""
    return lambda x: function(x.astype(np.float32), *parameters).astype(np.float64)


def _rsqrt(x: Doubles) -> Doubles:
    """Return 1 / sqrt(x), root and quotient rounded to float32 as PyTorch has them."""
    result: Doubles = (np.float32(1) / np.sqrt(x.astype(np.float32))).astype(np.float64)
    return result


def _exp(x: Doubles, library: str) -> Doubles:
    limited = np.clip(x, _SMALLEST_EXPONENT, _LARGEST_EXPONENT).astype(np.float32)
    return np.where(x > _LARGEST_EXPONENT, np.inf, exponential_of_library(limited, library).astype(np.float64))


def _hard_swish(x: Doubles) -> Doubles:
    """Return x * clamp(x + 3, 0, 6) / 6, every step rounded to float32 as PyTorch has it."""
    single = x.astype(np.float32)
    limited = np.clip(single + np.float32(3), np.float32(0), np.float32(6))
    result: Doubles = ((single * limited).astype(np.float32) / np.float32(6)).astype(np.float64)
    return result


def _softplus(x: Doubles) -> Doubles:
    softened: Doubles = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return softened


def _gelu(x: Doubles) -> Doubles:
    return gelu_of_vectors(x.astype(np.float32)).astype(np.float64)


def _gelu_by_tanh(x: Doubles) -> Doubles:
    """Return x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, every step rounded to float32 as PyTorch has it."""
    single = x.astype(np.float32)
    inner = np.sqrt(np.float32(2 / np.pi)) * (single + np.float32(0.044715) * (single * single * single))
    bent = np.tanh(inner.astype(np.float64)).astype(np.float32)
    result: Doubles = (single * (np.float32(0.5) * (np.float32(1) + bent))).astype(np.float64)
    return result


_FUNCTIONS: dict[str, Function] = {
    "bnll": _softplus,
    "ceil": np.ceil,
    "cosine": np.cos,
    "erf": erf,
    "floor": np.floor,
    "log": np.log,
    "reciprocal": np.reciprocal,
    "round": np.rint,
    "rsqrt": _rsqrt,
    "sine": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "HARDSWISH": _hard_swish,
    "MISH": _of_vectors(vectors.mish),
    "SIGMOID": _of_vectors(vectors.sigmoid),
    "SILU": _of_vectors(vectors.silu),
    "SOFTPLUS": _of_vectors(vectors.softplus),
    "SOFTSIGN": _of_vectors(vectors.softsign),
    "TANH": np.tanh,
}
PARAMETRIC = ("ELU", "GELU", "HARDSIGMOID", "SELU", "SWISH")
METHODS = (*(name for name in _FUNCTIONS if name.isupper()), *PARAMETRIC)
OPERATORS = ("exp", *(name for name in _FUNCTIONS if name.islower()))
_FROM_LOWEST = ("bnll", "cosine", "reciprocal", "rsqrt", "sine", "sqrt")
"""Layers whose tables are read from the lowest quantized value on, also of a restricted range."""
_UNREPEATED = (*_FROM_LOWEST, "round")
"""Layers whose tables have one point for each entry there. In a restricted range their points are narrower than a step.

Source: Compass Optimizer, ops/ of these names, which do without activation.py, or without half of it.
"""


@dataclass(frozen=True, eq=False)
class CurveParams:
    """A table and the type of its entries."""

    table: Table
    dtype: np.dtype[np.generic]

    def apply(self, x: Array) -> Array:
        """Return quantized values of quantized values."""
        return self.table.lookup(x).astype(self.dtype)


def lower(node: Node, operands: Operands) -> CurveParams:
    """Compute the table."""
    x, output = operands.input(0), operands.output()
    function = function_of(node)
    table = table_of(
        node,
        x,
        output,
        lambda v: function(v.astype(np.float64)).astype(np.float32),
        repeats=node.operator not in _UNREPEATED,
        from_lowest=node.operator in _FROM_LOWEST,
    )
    return CurveParams(table, output.dtype.storage)


def function_of(node: Node) -> Function:
    """Return the floating-point function of a layer, in float64."""
    method = node.attributes.text("method", "")
    if node.operator == "exp":
        library = library_of(node)
        return lambda x: _exp(x, library)
    if method == "GELU":
        return _gelu_by_tanh if node.attributes.text("approximate", "NONE") == "TANH" else _gelu
    if method == "HARDSIGMOID":
        a, b, low, high = (np.float32(node.attributes.real(key)) for key in ("alpha", "beta", "clip_min", "clip_max"))
        return lambda x: np.clip(a * x.astype(np.float32) + b, low, high).astype(np.float64)
    if method == "SWISH":
        return _of_vectors(vectors.swish, node.attributes.real("alpha", 1.0))
    if method in PARAMETRIC:
        alpha = node.attributes.real("alpha", 1.0)
        gamma = node.attributes.real("gamma", 1.0) if method == "SELU" else 1.0
        return _of_vectors(vectors.elu, alpha, gamma)
    return _FUNCTIONS[method if method in METHODS else node.operator]


_PERIODIC: dict[str, Callable[[Array], Array]] = {"cosine": np.cos, "sine": np.sin}
SCALE = 32767


@dataclass(frozen=True, eq=False)
class PeriodicParams:
    """The params of one layer: the table of a period, zp_x, M and N, the output's type."""

    table: Integers
    input_offset: int
    rescale: Multiplier
    dtype: np.dtype[np.generic]

    def apply(self, x: Array) -> Array:
        """Return quantized values of quantized values."""
        place = self.rescale.apply(x.astype(np.int64) + self.input_offset).astype(np.int64)
        result: Array = self.table[place & (self.table.size - 1)].astype(self.dtype)
        return result


def lower_periodic(node: Node, operands: Operands) -> PeriodicParams | CurveParams:
    """Compute the table; at 16 bits M and N.

    Raises:
        UnsupportedError: an input of another width.
    """
    x, output = operands.input(0), operands.output()
    if not is_wide(x) and not is_wide(output):
        return lower(node, operands)
    if bits_of(x) != bits_of(output):
        raise UnsupportedError(
            f"{node.operator} from {bits_of(x)} to {bits_of(output)} bits; allowed is one width in both layers"
        )
    given = imported_numbers(node)
    entries = given if given is not None else _period(node, operands)
    ratio = np.float32(entries.size / 2 / np.pi) / scale_of(x)
    multiplier = multiplier_of(node, ratio, WIDEST + 1)
    return PeriodicParams(entries, offset_of(x), multiplier, output.dtype.storage)


def run(params: PeriodicParams | CurveParams, x: Array) -> tuple[Array, ...]:
    """Run the table: quantized [S, ...] -> quantized [S, ...]."""
    return (params.apply(x),)


def _period(node: Node, operands: Operands) -> Integers:
    count = 1 << table_bits(node, operands.input(0))
    angles = even_steps(0, 2 * np.pi, count)
    values = _PERIODIC[node.operator](angles.astype(np.float64))
    return encode(values.astype(np.float32), operands.output().affine)


KERNELS = {
    **dict.fromkeys(
        OPERATORS,
        Kernel(
            lower,
            run,
            "a table of the function",
            "Compass Optimizer, ops/activation.py, apply_lut; docs/rules/aipu/values.md#tables",
        ),
    ),
    **dict.fromkeys(
        _PERIODIC,
        Kernel(
            lower_periodic,
            run,
            "a table; at 16 bits of one period",
            "Compass Optimizer, ops/cosine.py; docs/rules/aipu/values.md#tables",
        ),
    ),
}
