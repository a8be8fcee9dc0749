"""Operators in GAP9's arithmetic against loops over Python integers, written from docs/targets/gap9.md."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np
import pytest

from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Attribute, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower

Type = tuple[float, int, bool]
"""Scale, zero point, signed."""


def affine(kind: Type, bits: int = 8) -> Affine:
    return Affine.per_tensor(kind[0], kind[1], bits, kind[2])


def dtype(kind: Type) -> DType:
    return DType.INT8 if kind[2] else DType.UINT8


def operator(
    name: str,
    inputs: Sequence[tuple[tuple[int, ...], Type]],
    output: tuple[tuple[int, ...], Type],
    constants: Sequence[Array] = (),
    **options: Attribute,
) -> Graph:
    b = GraphBuilder(name)
    tensors = [b.input(f"x{i}", shape, dtype(kind), affine(kind)) for i, (shape, kind) in enumerate(inputs)]
    tensors += [b.constant(f"c{i}", c) for i, c in enumerate(constants)]
    return b.build([b.add(name, tensors, output[0], dtype(output[1]), affine(output[1]), **options)])


def run(graph: Graph, *arrays: Array) -> Array:
    lowered = lower(graph, "gap9")
    return Engine(lowered).run(list(arrays))[lowered.outputs[0]]


def codes(kind: Type, shape: tuple[int, ...], seed: int = 0) -> Array:
    low = -128 if kind[2] else 0
    return np.random.default_rng(seed).integers(low, low + 256, (3, *shape)).astype(dtype(kind).storage)


def clip(value: int, kind: Type) -> int:
    low = -128 if kind[2] else 0
    return min(max(value, low), low + 255)


def rounded_shift(value: int, n: int) -> int:
    return value if n == 0 else (value + (1 << (n - 1))) >> n


SIGNED, UNSIGNED, OTHER = (0.05, -3, True), (0.04, 117, False), (0.09, 131, False)
SYMMETRIC = (0.05, 0, True)


@pytest.mark.parametrize("kind", [SIGNED, UNSIGNED])
@pytest.mark.parametrize(("size", "padding"), [(2, "valid"), (3, "same"), (5, "same")])
@pytest.mark.parametrize("pool", ["average_pool_2d", "max_pool_2d"])
def test_pools_count_padding_as_zero_point(kind: Type, size: int, padding: str, pool: str) -> None:
    options = {"padding": padding, "stride_h": 2, "stride_w": 2, "filter_height": size, "filter_width": size}
    out = (1, 3, 3, 2) if padding == "valid" else (1, 4, 4, 2)
    graph = operator(pool, [((1, 7, 7, 2), kind)], (out, kind), **options)
    x = codes(kind, (1, 7, 7, 2))
    found = run(graph, x)
    before = 0 if padding == "valid" else (((out[1] - 1) * 2 + size) - 7) // 2
    for s, i, j, c in np.ndindex(3, out[1], out[2], 2):
        taps = []
        for di, dj in np.ndindex(size, size):
            a, b = i * 2 - before + di, j * 2 - before + dj
            taps.append(int(x[s, 0, a, b, c]) if 0 <= a < 7 and 0 <= b < 7 else kind[1])
        if pool == "max_pool_2d":
            expected = max(taps)
        else:
            expected = clip(rounded_shift(sum(taps) * (65536 // size**2), 16), kind)
        assert found[s, 0, i, j, c] == expected


@pytest.mark.parametrize(
    ("first", "second", "output"), [(UNSIGNED, OTHER, (0.11, 124, False)), (SYMMETRIC, (0.02, 0, True), SYMMETRIC)]
)
@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums_are_near_the_real_ones(first: Type, second: Type, output: Type, name: str) -> None:
    graph = operator(name, [((1, 4), first), ((1, 4), second)], ((1, 4), output))
    x, y = codes(first, (1, 4)), codes(second, (1, 4), 1)
    real = (x.astype(float) - first[1]) * first[0]
    other = (y.astype(float) - second[1]) * second[0]
    expected = (real + other if name == "add" else real - other) / output[0] + output[1]
    low = -128 if output[2] else 0
    inside = (expected > low + 2) & (expected < low + 253)
    assert np.abs(run(graph, x, y) - expected)[inside].max() <= 2


def test_sub_as_the_vendor_computes_it() -> None:
    kinds = [((1, 4), UNSIGNED), ((1, 4), OTHER)]
    x, y = codes(UNSIGNED, (1, 4)), codes(OTHER, (1, 4), 1)
    exact = lower(operator("sub", kinds, ((1, 4), OTHER)), "gap9").nodes[0].params
    vendor = lower(operator("sub", kinds, ((1, 4), OTHER), sub="nntool"), "gap9").nodes[0].params
    # + on both zero points instead of the operands' signs: twice the second one's share
    assert exact.bias - vendor.bias == pytest.approx(2 * 131, abs=1)
    assert (exact.scaled, exact.mul_bias.shift.tolist()) == (vendor.scaled, vendor.mul_bias.shift.tolist())
    run(operator("sub", kinds, ((1, 4), OTHER), sub="nntool"), x, y)


def test_broadcast_product() -> None:
    out = (0.07, 0, True)
    graph = operator("mul", [((1, 2, 3, 4), SYMMETRIC), ((4,), SYMMETRIC)], ((1, 2, 3, 4), out))
    x, y = codes(SYMMETRIC, (1, 2, 3, 4)), codes(SYMMETRIC, (4,), 1)
    m = lower(graph, "gap9").nodes[0].params.mul_bias
    found = run(graph, x, y)
    for s, i, j, c in np.ndindex(3, 2, 3, 4):
        product = int(x[s, 0, i, j, c]) * int(y[s, c]) * int(m.multiplier[0])
        assert found[s, 0, i, j, c] == clip(rounded_shift(product, int(m.shift[0])), out)


def test_mean_truncates_before_it_rounds() -> None:
    out = (0.03, 0, True)
    graph = operator("mean", [((1, 2, 5, 5), SYMMETRIC)], ((1, 2), out), [np.array([2, 3], np.int32)])
    x = codes(SYMMETRIC, (1, 2, 5, 5))
    m = lower(graph, "gap9").nodes[0].params.average.mul_bias
    found = run(graph, x)
    for s, c in np.ndindex(3, 2):
        total = int(x[s, 0, c].astype(int).sum()) << 7
        mean = abs(total) // 25 * (1 if total > 0 else -1)
        assert found[s, 0, c] == clip(rounded_shift(mean * int(m.multiplier[0]), int(m.shift[0])), out)


def test_leaky_relu() -> None:
    graph = operator("leaky_relu", [((1, 64), SYMMETRIC)], ((1, 64), SYMMETRIC), alpha=0.3)
    x = codes(SYMMETRIC, (1, 64))
    expected = [[int(v) if v > 0 else rounded_shift(int(v) * 38, 7) for v in row] for row in x[:, 0]]
    assert run(graph, x)[:, 0].tolist() == expected


@pytest.mark.parametrize("name", ["logistic", "tanh", "hard_swish"])
def test_curves_alone_are_near_the_real_ones(name: str) -> None:
    source = (8 / 127, 0, True) if name != "hard_swish" else (6 / 127, 0, True)
    out = (1 / 127 if name != "hard_swish" else 6 / 127, 0, True)
    x = np.tile(np.arange(-128, 128, dtype=np.int8), (3, 1, 1))
    found = run(operator(name, [((1, 256), source)], ((1, 256), out)), x)[0, 0] * out[0]
    real = np.arange(-128, 128) * source[0]
    expected = {
        "logistic": 1 / (1 + np.exp(-real)),
        "tanh": np.tanh(real),
        "hard_swish": real * np.clip(real + 3, 0, 6) / 6,
    }[name]
    assert np.abs(found - expected).max() < (0.04 if name != "hard_swish" else 0.08)


def test_softmax_sums_to_one() -> None:
    graph = operator("softmax", [((1, 12), (0.125, 0, True))], ((1, 12), SYMMETRIC))
    graph.tensors[1] = type(graph.tensors[1])("y", (1, 12), DType.INT16, affine((2.0**-15, 0, True), 16))
    x = codes((0.125, 0, True), (1, 12))
    found = run(graph, x)
    assert np.abs(found.astype(int).sum(axis=-1) - 32768).max() < 12 * 2
    real = [[exp(v * 0.125) for v in row] for row in x[:, 0]]
    for row, weights in zip(found[:, 0], real, strict=True):
        assert np.abs(row / 32768 - np.array(weights) / sum(weights)).max() < 1e-3


@pytest.mark.parametrize("kind", [(0.125, 3, True), (0.1, 0, True), (2.0**-17, 0, True)])
def test_softmax_takes_powers_of_two(kind: Type) -> None:
    with pytest.raises(UnsupportedError, match="power of 2"):
        lower(operator("softmax", [((1, 4), kind)], ((1, 4), SYMMETRIC)), "gap9")


@pytest.mark.parametrize(("source", "target"), [(SIGNED, UNSIGNED), (UNSIGNED, SYMMETRIC), (SYMMETRIC, OTHER)])
def test_quantize(source: Type, target: Type) -> None:
    x = codes(source, (1, 64))
    found = run(operator("quantize", [((1, 64), source)], ((1, 64), target)), x)
    expected = np.floor((x.astype(np.float64) - source[1]) * source[0] / target[0] + 0.5) + target[1]
    assert found.tolist() == [[[clip(int(v), target) for v in row] for row in sample] for sample in expected]


def test_relu_clamps_at_zero() -> None:
    x = codes(UNSIGNED, (1, 64))
    found = run(operator("relu", [((1, 64), UNSIGNED)], ((1, 64), UNSIGNED)), x)
    assert np.array_equal(found, np.maximum(x, 117))
    with pytest.raises(UnsupportedError, match="a ReLU keeps the integer type"):
        lower(operator("relu", [((1, 64), UNSIGNED)], ((1, 64), SYMMETRIC)), "gap9")


def test_relu6_between_two_scales() -> None:
    out = (6 / 127, 0, True)
    graph = operator("relu6", [((1, 64), (0.09, 0, True))], ((1, 64), out))
    x = codes((0.09, 0, True), (1, 64))
    expected = np.clip(x * 0.09, 0, 6) / out[0]
    assert np.abs(run(graph, x) - expected).max() <= 1


@pytest.mark.parametrize("bits", [2, 5, 8])
@pytest.mark.parametrize("depthwise", [False, True])
def test_convolution(bits: int, depthwise: bool) -> None:
    random = np.random.default_rng(bits)
    source, out = (0.05, 117, False), (0.4, 90, False)
    half = 1 << (bits - 1)
    shape = (1, 3, 3, 4) if depthwise else (4, 3, 3, 4)
    w = random.integers(1, 2 * half, shape).astype(np.uint8)
    scale = np.full(4, 0.03)
    b = GraphBuilder("conv")
    x = b.input("x", (1, 5, 5, 4), DType.UINT8, affine(source))
    weights = b.constant("w", w, Affine(scale, np.full(1, half), 3 if depthwise else 0, bits, False, True))
    biases = random.integers(-200, 200, 4).astype(np.int32)
    bias = b.constant("b", biases, Affine(0.05 * scale, np.zeros(1, np.int64), 0, 32))
    name = "depthwise_conv_2d" if depthwise else "conv_2d"
    options = {"padding": "same", "stride_h": 1, "stride_w": 1}
    graph = b.build([b.add(name, [x, weights, bias], (1, 5, 5, 4), DType.UINT8, affine(out), **options)])
    given = codes(source, (1, 5, 5, 4))
    found = run(graph, given)
    m = lower(graph, "gap9").nodes[0].params.filter.mul_bias
    for s, i, j, o in np.ndindex(3, 5, 5, 4):
        total = int(biases[o]) + int(np.floor(90 * 0.4 / (0.05 * 0.03) + 0.5))
        for di, dj, c in np.ndindex(3, 3, 4):
            if depthwise and c != o:
                continue
            a, e = i - 1 + di, j - 1 + dj
            code = int(given[s, 0, a, e, c]) if 0 <= a < 5 and 0 <= e < 5 else 117
            weight = int(w[0, di, dj, o] if depthwise else w[o, di, dj, c]) - half
            total += (code - 117) * weight
        expected = clip(rounded_shift(total * int(m.multiplier[o]), int(m.shift[o])), out)
        assert found[s, 0, i, j, o] == expected


def test_results_do_not_depend_on_the_chunk() -> None:
    graph = lower(operator("add", [((1, 4), UNSIGNED), ((1, 4), OTHER)], ((1, 4), OTHER)), "gap9")
    x, y = codes(UNSIGNED, (1, 4)), codes(OTHER, (1, 4), 1)
    all_at_once = Engine(graph).run([x, y])[graph.outputs[0]]
    assert np.array_equal(Engine(graph).run([x, y], chunk_size=1)[graph.outputs[0]], all_at_once)


def product_layer(weights: Array, bias: int, ratio: float) -> Graph:
    """Return a fully connected layer of one output for each row of weights; ratio = s_x s_w / s_y."""
    b = GraphBuilder("product")
    x = b.input("x", (1, weights.shape[1]), DType.INT8, Affine.per_tensor(np.float64(0.5), -128, 8))
    w = b.constant("w", weights, Affine.per_tensor(np.float64(0.25), 0, 8))
    products = Affine(np.full(len(weights), 0.125), np.zeros(len(weights), np.int64), 0, 32, True)
    c = b.constant("b", np.full(len(weights), bias, np.int32), products)
    output = Affine.per_tensor(np.float64(0.125) / ratio, -128, 8)
    return b.build([b.add("fully_connected", [x, w, c], (1, len(weights)), DType.INT8, output)])


@pytest.mark.parametrize("outputs", [1, 3])
def test_products_of_one_output_or_several(outputs: int) -> None:
    rng = np.random.default_rng(outputs)
    weights = rng.integers(-127, 128, (outputs, 7)).astype(np.int8)
    x = rng.integers(-128, 128, (20, 1, 7)).astype(np.int8)
    sums = [[sum((int(a) + 128) * int(w) for a, w in zip(r, v, strict=True)) for v in weights] for r in x[:, 0]]
    wanted = [[clip(rounded_shift(total + 50, 7) - 128, SIGNED) for total in row] for row in sums]
    assert run(product_layer(weights, 50, 2.0**-7), x)[:, 0].tolist() == wanted


def test_the_channels_whose_product_with_m_can_leave_int32_are_named() -> None:
    """Sums of x + 128 in 0..255 reach one way from the bias alone, here 1024 * 127 * 255 * 127.

    Source: docs/differences/gap9.md.
    """
    rows = np.array([127, -127, 1, 0], np.int8)
    graph = lower(product_layer(np.repeat(rows[:, None], 1024, axis=1), 0, 127 / 2.0**14), "gap9")
    params = graph.nodes[0].params.filter
    (m,) = {int(m) for m in np.atleast_1d(params.rescaling.mul_bias.multiplier)}
    assert m == 127
    reached = [1024 * abs(int(row)) * 255 * m for row in rows]
    assert params.overflowing == tuple(c for c, value in enumerate(reached) if value > 2**31 - 1) == (0, 1)
