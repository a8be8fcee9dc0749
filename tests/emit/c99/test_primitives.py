"""Primitives in C, as they are made from their Python, against the Python itself: at all borders, and at random."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support import c_compiler
from tflq.emit.c99.recorder import Call
from tflq.emit.c99.shared import Shared
from tflq.interpreter.kernels.aipu import multiplier
from tflq.interpreter.kernels.tpu_mlir import multiplier as tpu_mlir
from tflq.interpreter.numerics import fixed_point, gemmlowp, gemmlowp_int16
from tflq.interpreter.recording.primitive import Primitive

Integers = NDArray[np.int64]
INT32 = (-(1 << 31), (1 << 31) - 1)


def borders(low: int, high: int, generator: np.random.Generator) -> Integers:
    """Ends, 0, powers of two and what stands beside them, and random numbers of all sizes."""
    powers = [s * (1 << n) + d for n in range(48) for s in (-1, 1) for d in (-1, 0, 1)]
    drawn = (generator.integers(low, high, 400, endpoint=True) >> generator.integers(0, 40, 400)).tolist()
    return np.unique(np.array([x for x in (low, high, 0, *powers, *drawn) if low <= x <= high], np.int64))


CASES = {
    "wrap_int32": (fixed_point.wrap_int32, [(-(1 << 46), 1 << 46)], {}),
    "saturate": (fixed_point.saturate, [(-(1 << 46), 1 << 46)], {"bits": 16}),
    "srdhm": (fixed_point.saturating_rounding_doubling_high_mul, [INT32, INT32], {"bits": 32}),
    "srdhm16": (fixed_point.saturating_rounding_doubling_high_mul, [(-32768, 32767)] * 2, {"bits": 16}),
    "sdhm16": (fixed_point.saturating_doubling_high_mul_16, [(-32768, 32767)] * 2, {}),
    "rdbp": (fixed_point.rounding_divide_by_pot, [INT32, (0, 31)], {}),
    "mbq": (fixed_point.multiply_by_quantized_multiplier, [INT32, INT32, (-31, 30)], {}),
    "mbq64": (fixed_point.multiply_by_quantized_multiplier_64, [(-(1 << 46), 1 << 46), (0, INT32[1]), (-31, 14)], {}),
    "exp": (gemmlowp.exp_on_negative_values, [(INT32[0], 0)], {"integer_bits": 5}),
    "logistic16": (gemmlowp_int16.logistic_of_int16, [(-32768, 32767)], {"integer_bits": 3}),
    **{
        f"tanh16 of {bits} bits": (gemmlowp_int16.tanh_of_int16, [(-32768, 32767)], {"integer_bits": bits})
        for bits in (0, 3, 6)
    },
    "reciprocal": (gemmlowp.one_over_one_plus_x, [(0, INT32[1])], {}),
    "bit_length": (gemmlowp.bit_length, [(0, 1 << 46)], {}),
    "norm": (fixed_point.norm, [(-(1 << 46), 1 << 46), (0, 31)], {}),
    "shift_half_up": (tpu_mlir.shift_half_up, [(-(1 << 46), 1 << 46), (0, 62)], {}),
    "halves_to_even": (multiplier.scaled, [(-(1 << 31), 1 << 31), (0, 32767), (-4, 40)], {}),
}


def primitive_of(function: object) -> Primitive:
    """Return the record behind a decorated function."""
    cells = [cell.cell_contents for cell in function.__closure__]  # type: ignore[attr-defined]
    return next(content for content in cells if isinstance(content, Primitive))


@pytest.mark.parametrize("name", CASES)
def test_equal_at_all_borders(name: str, tmp_path: Path) -> None:
    function, ranges, fixed = CASES[name]
    generator = np.random.default_rng(len(name))
    columns = [borders(low, high, generator) for low, high in ranges]
    if len(columns) > 1:
        picks = [generator.integers(0, len(c), 60_000) for c in columns]
        columns = [c[p] for c, p in zip(columns, picks, strict=True)]
    rule = primitive_of(function)
    names = [k for k in rule.function.__code__.co_varnames[: rule.function.__code__.co_argcount] if k not in fixed]
    dtypes = {k: np.dtype(np.int64) for k in names}
    examples = {k: c[0] for k, c in zip(names, columns, strict=True)}
    shared = Shared()
    called, arguments, result = shared.primitive(Call(rule, fixed, dtypes, examples), examples)
    assert result == "int64_t"
    words = ", ".join(f"in{i}[n]" for i in range(len(arguments)))
    parameters = ", ".join(f"const int64_t *in{i}" for i in range(len(arguments)))
    (tmp_path / "rule.c").write_text(
        "#include <float.h>\n#include <stdint.h>\n"
        + "\n".join([*shared.helpers.values(), *shared.primitives.values()])
        + f"\nvoid run({parameters}, int64_t *out, int64_t count);\n"
        f"void run({parameters}, int64_t *out, int64_t count)\n"
        f"{{\n    for (int64_t n = 0; n < count; n++) {{ out[n] = {called}({words}); }}\n}}\n"
    )
    library = c_compiler.build(tmp_path, "-O1", "-shared", "-fPIC", output="rule.so", sources=("rule.c",))
    found = np.empty(len(columns[0]), np.int64)
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*map(np.ascontiguousarray, columns), found)]
    ctypes.CDLL(str(library)).run(*pointers, ctypes.c_int64(len(found)))
    np.testing.assert_array_equal(found, np.asarray(function(*columns, **fixed)).astype(np.int64))
