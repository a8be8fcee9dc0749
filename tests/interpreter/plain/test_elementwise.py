"""Elementwise operators of plain numbers against TFLite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.draw import affine, one_input, two_inputs, with_constants
from tests.support.known import check_known
from tests.support.outputs import check_outputs
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.plain.pairs import STABLEHLO_INTEGERS as INTEGERS

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 1e-40, 3e38, -3e38, 0.49999997, 8388609.0]


def reals(dtype=FLOAT32, size=5000, spread=30.0):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        return np.concatenate([SPECIAL, rng.normal(size=size) * spread]).astype(dtype.storage)[None]


def unary(operator, x, dtype, target=None):
    return one_input(operator, x.shape[1:], (dtype, None), (target or dtype, None))


@pytest.mark.parametrize(
    ("operator", "dtypes"),
    [
        ("square", [FLOAT32]),
        ("floor", [FLOAT32, DType.FLOAT16]),
        ("neg", [FLOAT32, DType.FLOAT16]),
        ("sign", [FLOAT32, DType.FLOAT64]),
        ("zeros_like", [FLOAT32]),
    ],
)
def test_exact_float_functions(oracle, operator, dtypes):
    for dtype in dtypes:
        x = reals(dtype)
        check_against_oracle(oracle, unary(operator, x, dtype), [x])


@pytest.mark.parametrize(("operator", "dtypes"), [("ceil", [FLOAT32]), ("round", [FLOAT32, DType.FLOAT16])])
def test_exact_float_functions_of_the_optimized_set(optimized_oracle, operator, dtypes):
    for dtype in dtypes:
        x = reals(dtype)
        check_against_oracle(optimized_oracle, unary(operator, x, dtype), [x])


@pytest.mark.parametrize("operator", ["floor", "neg", "maximum", "minimum", "less", "greater", "atan2"])
def test_bfloat16(oracle, operator):
    """TFLite's Python interface has no bfloat16: the operator stands between two casts."""
    b = GraphBuilder(operator)
    x = reals(size=500)
    count = 1 if operator in ("floor", "neg") else 2
    wide = [b.input(f"x{i}", x.shape[1:], FLOAT32) for i in range(count)]
    narrow = [b.add("cast", [t], x.shape[1:], DType.BFLOAT16) for t in wide]
    compares = operator in ("less", "greater")
    result = b.add(operator, narrow, x.shape[1:], DType.BOOL if compares else DType.BFLOAT16)
    graph = b.build([result if compares else b.add("cast", [result], x.shape[1:], FLOAT32)])
    check_outputs(oracle, graph, [x, x[:, ::-1].copy()][:count])


@pytest.mark.parametrize("dtype", [INT8, INT16, DType.INT32, DType.INT64])
def test_integers_are_negated_raw(oracle, dtype):
    quantization = affine(dtype, 0.5, 3) if dtype is INT8 else None
    graph = one_input("neg", (200,), (dtype, quantization), (dtype, quantization))
    (x,) = random_inputs(np.random.default_rng(1), graph, 1)
    x[0, 0] = dtype.minimum
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize(("operator", "dtype"), [("sign", DType.INT32), ("zeros_like", DType.INT64)])
def test_integer_functions(oracle, operator, dtype):
    x = np.array([[-5, 0, 7]], dtype.storage)
    check_against_oracle(oracle, unary(operator, x, dtype), [x])


@pytest.mark.parametrize("operator", ["sin", "cos"])
@pytest.mark.parametrize("dtype", [FLOAT32, DType.FLOAT16])
def test_sine_and_cosine(oracle, operator, dtype):
    x = reals(dtype, 20000)
    check_known(oracle, unary(operator, x, dtype), [x])


@pytest.mark.parametrize("dtype", [FLOAT32, DType.FLOAT64, DType.FLOAT16])
def test_atan2(oracle, dtype):
    graph = two_inputs("atan2", ((5015,), (5015,)), ((dtype, None),) * 2, (dtype, None))
    x = reals(dtype)
    y = np.random.default_rng(2).permutation(x[0])[None]
    check_known(oracle, graph, [x, y])


@pytest.mark.parametrize("operator", ["real", "imag", "complex_abs"])
@pytest.mark.parametrize(("dtype", "target"), [(DType.COMPLEX64, FLOAT32), (DType.COMPLEX128, DType.FLOAT64)])
def test_complex(oracle, operator, dtype, target):
    x = np.empty((1, 5015), dtype.storage)
    x.real, x.imag = reals(target), np.roll(reals(target), 7)
    graph = unary(operator, x, dtype, target)
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize("operator", ["bitwise_xor", "right_shift"])
@pytest.mark.parametrize("dtype", [INT8, DType.UINT8, INT16, DType.UINT16, DType.INT32, DType.UINT32])
def test_bits(oracle, operator, dtype):
    graph = two_inputs(operator, ((50, 4), (4,)), ((dtype, None),) * 2, (dtype, None))
    x, y = random_inputs(np.random.default_rng(1), graph, 10)
    y[:5] %= 40
    check_against_oracle(oracle, graph, [x, y])


@pytest.mark.parametrize("operator", ["floor_div", "floor_mod"])
@pytest.mark.parametrize("dtype", [INT8, INT16, DType.INT32, DType.INT64, FLOAT32])
def test_floored_division(oracle, operator, dtype):
    if (operator, dtype) == ("floor_div", DType.INT64):
        pytest.skip("TFLite has no FLOOR_DIV of int64")
    graph = two_inputs(operator, ((50, 4), (4,)), ((dtype, None),) * 2, (dtype, None))
    x, y = random_inputs(np.random.default_rng(1), graph, 50)
    x[:20], y[:20] = x[:20] % 11 - 5, y[:20] % 7 - 3
    y[y == 0] = 3
    if dtype.is_integer:
        x[-1] = dtype.minimum if dtype.bits <= 16 else 5
        y[-1] = -1
    check_against_oracle(oracle, graph, [x, y])


def test_float_modulo_of_special_numbers(oracle):
    graph = two_inputs("floor_mod", ((15, 1), (15,)), ((FLOAT32, None),) * 2, (FLOAT32, None))
    values = np.array(SPECIAL, np.float32)
    check_against_oracle(oracle, graph, [values.reshape(1, 15, 1), values[None]])


@pytest.mark.parametrize("sizes", [((40,), (40,)), ((40,), ()), ((8, 5), (5,)), ((5,), (8, 1, 1))])
@pytest.mark.parametrize("dtype", [FLOAT32, DType.INT32])
def test_pow(oracle, sizes, dtype):
    graph = two_inputs("pow", sizes, ((dtype, None),) * 2, (dtype, None))
    rng = np.random.default_rng(1)
    if dtype is FLOAT32:
        x, y = rng.normal(size=(40, *sizes[0])) * 3, rng.normal(size=(40, *sizes[1])) * 3
        y[::2] = np.rint(y[::2])
    else:
        x, y = rng.integers(-30, 30, (40, *sizes[0])), rng.integers(0, 12, (40, *sizes[1]))
    inputs = [x.astype(dtype.storage), y.astype(dtype.storage)]
    (check_known if dtype is FLOAT32 else check_against_oracle)(oracle, graph, inputs)


@pytest.mark.parametrize("dtype", [FLOAT32, DType.INT32])
def test_add_n(oracle, dtype):
    b = GraphBuilder("add_n")
    graph = b.build([b.add("add_n", [b.input(f"x{i}", (7, 3), dtype) for i in range(5)], (7, 3), dtype)])
    inputs = random_inputs(np.random.default_rng(1), graph, 10)
    for x in inputs:
        x[0] = -dtype.storage.type(0)  # a sum of -0 is -0
    check_against_oracle(oracle, graph, inputs)


@pytest.mark.parametrize("dtype", [FLOAT32, DType.INT32, DType.INT64])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumsum(oracle, dtype, exclusive, reverse, axis):
    options = {"exclusive": exclusive, "reverse": reverse}
    graph = with_constants("cumsum", (4, 30, 5), (4, 30, 5), [np.array(axis, np.int32)], dtype, **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 10))


@pytest.mark.parametrize("dtype", [FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64])
def test_bucketize(oracle, dtype):
    x = reals(dtype) if dtype.is_floating else np.arange(-200, 200, dtype=dtype.storage)[None]
    options = {"boundaries": np.array([-10.5, 0, 0, 3, 100], np.float32)}
    graph = one_input("bucketize", x.shape[1:], (dtype, None), (DType.INT32, None), **options)
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 6.0), (-3.3, 0.0), (-0.1, 7.7)])
@pytest.mark.parametrize("bits", [2, 8, 16])
def test_fake_quant(oracle, low, high, bits):
    x = reals(size=20000, spread=4)
    options = {"min": low, "max": high, "num_bits": bits, "narrow_range": False}
    graph = one_input("fake_quant", x.shape[1:], (FLOAT32, None), (FLOAT32, None), **options)
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize(("radius", "bias", "alpha", "beta"), [(5, 1, 1e-4, 0.75), (2, 2, 0.1, 0.5), (0, 1, 1, 1)])
def test_local_response_normalization(oracle, radius, bias, alpha, beta):
    options = {"radius": radius, "bias": float(bias), "alpha": float(alpha), "beta": float(beta)}
    shape = (2, 3, 3, 12)
    graph = one_input("local_response_normalization", shape, (FLOAT32, None), (FLOAT32, None), **options)
    inputs = random_inputs(np.random.default_rng(1), graph, 20)
    check_against_oracle(oracle, graph, inputs)


@pytest.mark.parametrize(("shape", "lengths"), [((8, 16), (8, 16)), ((3, 5, 9), (4, 16)), ((6, 6), (2, 2))])
def test_rfft2d(oracle, shape, lengths):
    output = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    b = GraphBuilder("rfft2d")
    operands = [b.input("x", shape, FLOAT32), b.constant("lengths", np.array(lengths, np.int32))]
    complex_result = b.add("rfft2d", operands, output, DType.COMPLEX64)
    parts = [b.add(name, [complex_result], output, FLOAT32) for name in ("real", "imag")]
    graph = b.build(parts)
    (x,) = random_inputs(np.random.default_rng(1), graph, 10)
    check_known(oracle, graph, [x])


@pytest.mark.parametrize("operator", ["add", "multiply", "maximum", "minimum"])
def test_stablehlo(oracle, operator):
    for name in [
        "float32",
        "float16",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
    ]:
        dtype = DType(name)
        graph = two_inputs(f"stablehlo_{operator}", ((20, 4),) * 2, ((dtype, None),) * 2, (dtype, None))
        check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 10))


def test_stablehlo_of_the_optimized_set(optimized_oracle):
    for dtype in INTEGERS:
        graph = two_inputs("stablehlo_and", ((20, 4),) * 2, ((dtype, None),) * 2, (dtype, None))
        check_against_oracle(optimized_oracle, graph, random_inputs(np.random.default_rng(1), graph, 10))
    for dtype in (INT8, INT16, DType.INT32):
        graph = two_inputs("stablehlo_shift_left", ((20, 4),) * 2, ((dtype, None),) * 2, (dtype, None))
        x, y = random_inputs(np.random.default_rng(1), graph, 10)
        check_against_oracle(optimized_oracle, graph, [x, y & 31])


def test_refusals():
    plain = (DType.INT32, None)
    zeros = [np.ones((1, 2), np.int32), np.zeros((1, 2), np.int32)]
    for operator in ("floor_div", "floor_mod"):
        with pytest.raises(UnsupportedError, match="a divisor is 0"):
            Engine(two_inputs(operator, ((2,), (2,)), (plain, plain), plain)).run(zeros)
    with pytest.raises(UnsupportedError, match="the lowest number by -1"):
        Engine(two_inputs("floor_mod", ((1,), (1,)), (plain, plain), plain)).run(
            [np.full((1, 1), -(1 << 31), np.int32), np.full((1, 1), -1, np.int32)]
        )
    with pytest.raises(GraphError, match="does not broadcast"):
        lower(two_inputs("stablehlo_add", ((3, 2), (2,)), (plain, plain), plain))
    with pytest.raises(GraphError, match="not ascending"):
        lower(one_input("bucketize", (2,), plain, plain, boundaries=np.array([1, 0], np.float32)))
    narrow = {"min": -1.0, "max": 1.0, "num_bits": 8, "narrow_range": True}
    with pytest.raises(UnsupportedError, match="narrow_range"):
        lower(one_input("fake_quant", (2,), (FLOAT32, None), (FLOAT32, None), **narrow))
    b = GraphBuilder("rfft2d")
    operands = [b.input("x", (4, 4), FLOAT32), b.constant("lengths", np.array([3, 4], np.int32))]
    graph = b.build([b.add("rfft2d", operands, (3, 3), DType.COMPLEX64)])
    with pytest.raises(GraphError, match="powers of two"):
        lower(graph)
    with pytest.raises(UnsupportedError, match="exponent is negative"):
        Engine(two_inputs("pow", ((1,), (1,)), (plain, plain), plain)).run([zeros[0][:, :1], -zeros[0][:, :1]])
