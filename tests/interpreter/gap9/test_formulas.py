"""GAP9's kernels over all quantized values, widths and borders, beside docs/rules/gap9/filters.md,
docs/rules/gap9/operators.md, in Python integers.

M and N are taken from the params; that M 2^-N is near the ratio of the scales is asked apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import exp, floor
from typing import Any

import numpy as np
import pytest

from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.mul_bias import MulBias
from tflq.interpreter.kernels.gap9.rounding import same_scales
from tflq.interpreter.numerics.q15 import exp_q15, sigmoid_q15, tanh_q15

Kind = tuple[float, int, str]
"""Scale, zero point, element type."""
Placed = tuple[tuple[int, ...], Kind]


def affine(kind: Kind) -> Affine:
    return Affine.per_tensor(kind[0], kind[1], DType(kind[2]).bits, not kind[2].startswith("u"))


def one(name: str, inputs: Sequence[Placed], output: Placed, constants: Sequence[Array] = (), **options: Any) -> Graph:
    b = GraphBuilder(name)
    tensors = [b.input(f"x{i}", shape, DType(kind[2]), affine(kind)) for i, (shape, kind) in enumerate(inputs)]
    tensors += [b.constant(f"c{i}", c) for i, c in enumerate(constants)]
    y = b.add(name, tensors, output[0], DType(output[1][2]), affine(output[1]), **options)
    return b.build([y])


def run(graph: Graph, *arrays: Array) -> tuple[Any, Array]:
    """Return the params and what the graph makes of samples."""
    lowered = lower(graph, "gap9")
    return lowered.nodes[0].params, Engine(lowered).run(list(arrays))[lowered.outputs[0]]


def drawn(kind: Kind, shape: tuple[int, ...], seed: int = 0, count: int = 2) -> Array:
    """Codes of all sizes, the ends of the type among them."""
    ends = np.iinfo(kind[2])
    found = np.random.default_rng([seed, *shape]).integers(ends.min, ends.max, (count, *shape), endpoint=True)
    found.reshape(-1)[:2] = ends.min, ends.max
    return found.astype(kind[2])


def clip(value: int, kind: Kind) -> int:
    ends = np.iinfo(kind[2])
    return min(max(value, int(ends.min)), int(ends.max))


def norm(value: int, n: int) -> int:
    return value if n == 0 else (value + (1 << (n - 1))) >> n


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def pair(found: MulBias, ratio: float) -> tuple[int, int]:
    """Return M and N, which stand for a ratio."""
    ((m, n),) = {(int(m), int(n)) for m, n in zip(found.multiplier, found.shift, strict=True)}
    assert abs(m - ratio * 2.0**n) <= 0.5001
    assert 0 < m < 256
    assert m % 2 or n == 0
    return m, n


def every(kind: Kind) -> Array:
    ends = np.iinfo(kind[2])
    return np.arange(ends.min, ends.max + 1).astype(kind[2])[None, None]


CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"logistic": sigmoid_q15, "tanh": tanh_q15}
OUTPUTS: list[Kind] = [(1 / 127, 0, "int8"), (1 / 255, 0, "uint8"), (1 / 100, 13, "uint8"), (2.0**-15, 0, "int16")]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", CURVES)
def test_curves_alone_read_a_code_as_sixteenths(name: str, output: Kind) -> None:
    for scale in (8 / 127, 0.25):
        kind: Kind = (scale, 0, "int8")
        params, found = run(one(name, [((1, 256), kind)], ((1, 256), output)), every(kind))
        m, n = pair(params.mul_bias, 2.0**-15 / output[0])
        q15 = CURVES[name](every(kind).astype(np.int64) * 256)
        assert found.tolist() == [[[clip(norm(int(q) * m, n) + output[1], output) for q in q15[0, 0]]]]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", CURVES)
def test_curves_behind_a_filter_read_q12(name: str, output: Kind) -> None:
    """More values than a block of the cache holds."""
    kind: Kind = (2.0**-12, 0, "int32")
    x = np.arange(-35000, 35000, dtype=np.int32)[None, None]
    params, found = run(one(name, [((1, 70000), kind)], ((1, 70000), output)), x)
    m, n = pair(params.mul_bias, 2.0**-15 / output[0])
    q15 = CURVES[name](x.astype(np.int64))
    assert found.tolist() == [[[clip(norm(int(q) * m, n) + output[1], output) for q in q15[0, 0]]]]


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("kind", [(0.1, 1, "int8"), (2.0**-11, 0, "int32"), (2.0**-12, 1, "int32")])
def test_curves_take_symmetric_types(name: str, kind: Kind) -> None:
    with pytest.raises(UnsupportedError, match="must be symmetric, and 2\\^-12 its scale"):
        lower(one(name, [((1, 4), kind)], ((1, 4), OUTPUTS[0])), "gap9")


def hard(x: int, kind: Kind, offset: float, is_swish: bool) -> int:
    product = min(max(x + floor(offset / kind[0] + 0.5), 0), floor(6 / kind[0] + 0.5))
    return x * product if is_swish else product


@pytest.mark.parametrize("name", ["hard_swish", "hard_sigmoid"])
@pytest.mark.parametrize("kind", [(6 / 127, 0, "int8"), (0.1, 0, "int8"), (0.02, 0, "int32"), (6 / 32767, 0, "int16")])
@pytest.mark.parametrize("output", [(0.047, 0, "int8"), (0.03, 17, "uint8")])
def test_hard_curves(name: str, kind: Kind, output: Kind) -> None:
    x = every(kind) if kind[2] != "int32" else np.arange(-700, 700, dtype=np.int32)[None, None]
    for offset in (3.0, 0.0):
        shape = x.shape[1:]
        params, found = run(one(name, [(shape, kind)], (shape, output), offset=offset), x)
        is_swish = name == "hard_swish"
        m, n = pair(params.mul_bias, (kind[0] ** 2 if is_swish else kind[0]) / 6 / output[0])
        wanted = [clip(norm(hard(int(v), kind, offset, is_swish) * m, n) + output[1], output) for v in x[0, 0]]
        assert found[0, 0].tolist() == wanted


@pytest.mark.parametrize("source", ["int16", "int32"])
def test_a_hard_swish_of_16_bits_wraps_as_nntools(source: str) -> None:
    kind, output = (6 / 32767, 0, source), (6 / 32767, 0, "int16")
    x = np.linspace(-32768, 32767, 3001).astype(source)[None, None]
    params, found = run(one("hard_swish", [((1, 3001), kind)], ((1, 3001), output), numerics="nntool"), x)
    m, n = pair(params.mul_bias, kind[0] ** 2 / 6 / output[0])
    products = [wrap(wrap(hard(int(v), kind, 3.0, True)) * m) for v in x[0, 0]]
    assert found[0, 0].tolist() == [clip(wrap(p + (1 << (n - 1))) >> n, output) for p in products]
    graph = one("hard_swish", [((1, 3001), kind)], ((1, 3001), output))
    if source == "int32":
        with pytest.raises(UnsupportedError, match="has 16 bits; hard swish takes 8"):
            lower(graph, "gap9")
    else:
        assert run(graph, x)[1].shape == x.shape


@pytest.mark.parametrize("alpha", [-1.0, -0.5, -0.0039, 0.0, 0.0038, 0.0040, 0.3, 0.9, 0.9959])
@pytest.mark.parametrize("output", [(0.05, 0, "int8"), (0.05, 7, "uint8"), (0.05, -9, "int8")])
def test_leaky_relu(alpha: float, output: Kind) -> None:
    for kind in ((0.05, 0, "int8"), (0.05, 0, "int32")):
        x = every((0, 0, "int8")).astype(kind[2])
        _, found = run(one("leaky_relu", [((1, 256), kind)], ((1, 256), output), alpha=alpha), x)
        slope = int(0.5 + 128 * alpha)
        wanted = [clip((int(v) if v > 0 else norm(int(v) * slope, 7)) + output[1], output) for v in x[0, 0]]
        assert found[0, 0].tolist() == wanted


@pytest.mark.parametrize(
    ("alpha", "kind", "words"),
    [
        (0.996, (0.05, 0, "int8"), "alpha is 0.996; allowed is -1.0 to below 0.996"),
        (-1.001, (0.05, 0, "int8"), "alpha is -1.001"),
        (0.1, (0.05, 1, "int8"), "must have zero point 0 and the scale of the output"),
        (0.1, (0.06, 0, "int8"), "must have zero point 0 and the scale of the output"),
    ],
)
def test_other_leaky_relus_are_refused(alpha: float, kind: Kind, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        lower(one("leaky_relu", [((1, 4), kind)], ((1, 4), (0.05, 0, "int8")), alpha=alpha), "gap9")


@pytest.mark.parametrize("name", ["relu", "relu6"])
@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ((0.05, 0, "int8"), (0.03, 0, "int8")),
        ((0.05, -20, "int8"), (0.07, 5, "int8")),
        ((0.05, 100, "uint8"), (0.02, 3, "uint8")),
        ((0.05, 100, "uint8"), (0.05, 0, "uint8")),
        ((0.05, -7, "int8"), (0.05, -7, "int8")),
        ((0.05, -128, "int8"), (0.05 * (1 + 9e-6), -128, "int8")),
        ((0.001, 300, "uint16"), (0.0007, 12, "uint16")),
    ],
)
def test_rectifiers(name: str, kind: Kind, output: Kind) -> None:
    x = every(kind)
    for shape in (x.shape[1:], (1, x.size // 8, 4, 2)):
        params, found = run(one(name, [(shape, kind)], (shape, output)), x.reshape(1, *shape))
        wanted = [max(int(v), kind[1]) for v in x.reshape(-1)]
        if abs(kind[0] - output[0]) > 1e-8 + 1e-5 * output[0] or kind[1] != output[1]:
            m, n = pair(params.mul_bias, kind[0] / output[0])
            wanted = [clip(norm((v - kind[1]) * m, n) + output[1], output) for v in wanted]
        assert params.idle == (wanted == x.reshape(-1).tolist())
        assert found.reshape(-1).tolist() == wanted


@pytest.mark.parametrize("exponent", [-15, -12, -9, -7, -4, -1, 0, 1])
@pytest.mark.parametrize("output", [(2.0**-15, 0, "int16"), (2.0**-7, 0, "int8")])
def test_softmax(exponent: int, output: Kind) -> None:
    kind: Kind = (2.0**exponent, 0, "int8")
    x = drawn(kind, (1, 3, 5), exponent + 20, 4)
    x[3] = np.arange(15).reshape(1, 3, 5) - 7
    params, found = run(one("softmax", [((1, 3, 5), kind)], ((1, 3, 5), output), beta=2.0), x)
    table = exp_q15(-np.arange(256, dtype=np.int64) * 2 ** (15 + exponent)).tolist()
    assert params.exponentials.tolist() == table
    for row, y in zip(x.reshape(-1, 5).tolist(), found.reshape(-1, 5).tolist(), strict=True):
        e = [table[max(row) - v] for v in row]
        inverse = (32767 << 15) // sum(e)
        assert y == [clip(abs(norm(v * inverse, 15 if output[2] == "int16" else 23)), output) for v in e]


@pytest.mark.parametrize("output", [(2.0**-15, 0, "int16"), (2.0**-7, 0, "int8")])
def test_softmax_of_16_bits_is_computed_in_float64(output: Kind) -> None:
    kind: Kind = (2.0**-10, 0, "int16")
    x = (drawn(kind, (1, 2, 5)) // 8).astype(np.int16)
    _, found = run(one("softmax", [((1, 2, 5), kind)], ((1, 2, 5), output)), x)
    for row, y in zip(x.reshape(-1, 5).tolist(), found.reshape(-1, 5).tolist(), strict=True):
        e = [exp((v - max(row)) * kind[0]) for v in row]
        assert y == [clip(floor(v / sum(e) / output[0] + 0.5), output) for v in e]


@pytest.mark.parametrize(
    "kind", [(2.0**-16, 0, "int8"), (0.75, 0, "int8"), (0.5, 0, "uint8"), (0.5, 1, "int8"), (0.3, 0, "int16")]
)
def test_softmax_takes_signed_powers_of_two(kind: Kind) -> None:
    with pytest.raises(UnsupportedError, match="softmax takes a signed symmetric type"):
        lower(one("softmax", [((1, 4), kind)], ((1, 4), (2.0**-15, 0, "int16"))), "gap9")


SUMS: list[tuple[Kind, Kind, Kind]] = [
    ((0.04, 117, "uint8"), (0.09, 131, "uint8"), (0.11, 124, "uint8")),
    ((0.09, 131, "uint8"), (0.04, 117, "uint8"), (0.11, 124, "uint8")),
    ((0.05, 0, "int8"), (0.05, 0, "int8"), (0.08, 0, "int8")),
    ((0.05, 3, "int8"), (0.05, -4, "int8"), (0.08, 0, "int8")),
    ((0.05, 0, "int8"), (0.01, 0, "int8"), (0.03, 9, "int8")),
    ((0.0004, 32768, "uint16"), (0.0009, 14000, "uint16"), (0.0011, 20000, "uint16")),
    ((0.0009, 0, "int16"), (0.0004, 0, "int16"), (0.0007, 0, "int16")),
    ((0.05, 0, "int8"), (0.0004, 0, "int16"), (0.06, 0, "int8")),
]


@pytest.mark.parametrize(("first", "second", "output"), SUMS)
@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums(name: str, first: Kind, second: Kind, output: Kind) -> None:
    """Of broadcast shapes, too."""
    shapes = [((1, 6, 40), (1, 6, 40)), ((1, 6, 40), (1, 1, 40)), ((1, 6, 1), (1, 6, 40))]
    for shape, other in shapes:
        x, y = drawn(first, shape, 1), drawn(second, other, 2)
        params, found = run(one(name, [(shape, first), (other, second)], ((1, 6, 40), output)), x, y)
        is_second = second[0] > first[0]
        signs = (1, 1 if name == "add" else -1)
        s_s, s_o = (second[0], first[0]) if is_second else (first[0], second[0])
        m1, n1 = pair(params.input_mul_bias, s_s / s_o)
        m2, n2 = pair(params.mul_bias, s_o / output[0])
        shift = s_o / output[0] * sum(
            sign * kind[1] * kind[0] / s_o for sign, kind in zip(signs, (first, second), strict=True)
        )  # fmt: skip
        bias = round(output[1] - shift)
        wanted = []
        for a, b in zip(*(v.reshape(-1).tolist() for v in np.broadcast_arrays(x, y)), strict=True):
            left, right = (a, norm(b * m1, n1)) if is_second else (norm(a * m1, n1), b)
            wanted.append(clip(norm((left + signs[1] * right) * m2, n2) + bias, output))
        assert found.reshape(-1).tolist() == wanted


def test_a_bias_of_a_sum_has_16_bits() -> None:
    """Z_y - S_o / S_y (Z_1 + Z_2) of 255 - 128 * 2 * 127 and so on."""

    def of(zero_point: int, numerics: str) -> Any:
        kinds: list[Kind] = [(0.5, zero_point, "uint8"), (0.5, 128, "uint8")]
        graph = one("add", [((1, 4), k) for k in kinds], ((1, 4), (0.5 / 128, 0, "uint8")), numerics=numerics)
        return lower(graph, "gap9").nodes[0].params

    assert of(127, "exact").bias == -128 * 255
    for extra, stored in ((128, -32768), (129, 32640)):
        params = of(extra, "nntool")
        assert (params.bias, params.wraps) == (stored, extra == 129)
    assert of(128, "exact").bias == -32768
    with pytest.raises(UnsupportedError, match="add up to a bias of -32896, 16 bits end at 32767"):
        of(129, "exact")


@pytest.mark.parametrize("types", [("int8", "int8", "int8"), ("int16", "int16", "int8"), ("int8", "int16", "int16")])
def test_products(types: tuple[str, str, str]) -> None:
    first, second, output = (
        (0.05, 0, types[0]),
        (0.02, 0, types[1]),
        (0.08 if types[2] == "int8" else 0.01, 0, types[2]),
    )
    x, y = drawn(first, (1, 8, 40), 1), drawn(second, (1, 8, 40), 2)
    params, found = run(one("mul", [((1, 8, 40), first), ((1, 8, 40), second)], ((1, 8, 40), output)), x, y)
    m, n = pair(params.mul_bias, first[0] * second[0] / output[0])
    pairs = zip(x.reshape(-1).tolist(), y.reshape(-1).tolist(), strict=True)
    assert found.reshape(-1).tolist() == [clip(norm(a * b * m, n), output) for a, b in pairs]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_products_take_no_zero_point(place: int) -> None:
    kinds: list[Kind] = [(0.05, int(i == place), "int8") for i in range(3)]
    with pytest.raises(UnsupportedError, match="has zero point 1; a product takes 0"):
        lower(one("mul", [((1, 4), kinds[0]), ((1, 4), kinds[1])], ((1, 4), kinds[2])), "gap9")


POOLS = [((2, 3), (1, 2), "valid"), ((3, 1), (2, 1), "same"), ((1, 4), (3, 2), "same"), ((3, 2), (1, 1), "same"),
         ((5, 4), (2, 3), "valid"), ((1, 1), (2, 1), "same")]  # fmt: skip


@pytest.mark.parametrize(("kernel", "stride", "padding"), POOLS)
@pytest.mark.parametrize("kind", [(0.05, -3, "int8"), (0.05, 117, "uint8"), (0.01, 30000, "uint16")])
@pytest.mark.parametrize("numerics", ["exact", "nntool"])
@pytest.mark.parametrize("name", ["average_pool_2d", "max_pool_2d"])
def test_pools(
    name: str, numerics: str, kind: Kind, kernel: tuple[int, int], stride: tuple[int, int], padding: str
) -> None:
    size, channels = (6, 7), 2
    reach = [
        (n - k) // s + 1 if padding == "valid" else -(-n // s) for n, k, s in zip(size, kernel, stride, strict=True)
    ]
    before = [max(0, (o - 1) * s + k - n) // 2 * (padding == "same")
              for o, s, k, n in zip(reach, stride, kernel, size, strict=True)]  # fmt: skip
    options: dict[str, Any] = {
        "filter_height": kernel[0],
        "filter_width": kernel[1],
        "stride_h": stride[0],
        "stride_w": stride[1],
    }
    x = drawn(kind, (1, *size, channels))
    graph = one(name, [((1, *size, channels), kind)], ((1, *reach, channels), kind), padding=padding,
                numerics=numerics, **options)  # fmt: skip
    _, found = run(graph, x)
    for s, i, j, c in np.ndindex(2, *reach, channels):
        taps = []
        for di, dj in np.ndindex(*kernel):
            a, b = i * stride[0] - before[0] + di, j * stride[1] - before[1] + dj
            taps.append(int(x[s, 0, a, b, c]) if 0 <= a < size[0] and 0 <= b < size[1] else kind[1])
        total = sum(taps) * (65536 // len(taps))
        mean = wrap(wrap(total) + 32768) >> 16 if numerics == "nntool" else norm(total, 16)
        assert found[s, 0, i, j, c] == (max(taps) if name == "max_pool_2d" else clip(mean, kind))


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("shape", [(1, 6), (1, 5, 3), (1, 4, 3, 2)])
@pytest.mark.parametrize("name", ["mean", "sum", "reduce_max"])
def test_reductions(name: str, shape: tuple[int, ...], is_kept: bool) -> None:
    kind: Kind = (0.05, 0, "int8")
    x = drawn(kind, shape, 3, 5)
    for count in range(1, len(shape)):
        for axes in combinations(range(1, len(shape)), count):
            result = tuple(1 if a in axes else n for a, n in enumerate(shape) if is_kept or a not in axes)
            output: Kind = kind if name == "reduce_max" else (0.031 if name == "mean" else 0.3, 0, "int8")
            for numerics in ("exact", "nntool"):
                graph = one(name, [(shape, kind)], (result, output), [np.array(axes, np.int32)], keep_dims=is_kept,
                            numerics=numerics)  # fmt: skip
                params, found = run(graph, x)
                taps = np.moveaxis(x, [a + 1 for a in axes], range(-count, 0)).reshape(
                    5, -1, int(np.prod([shape[a] for a in axes]))
                )
                rows = [[int(v) for v in row] for row in taps.reshape(-1, taps.shape[-1])]
                if name == "reduce_max":
                    wanted = [max(row) for row in rows]
                else:
                    unit = 128 if name == "mean" or numerics == "nntool" else 1
                    m, n = pair(params.average.mul_bias, kind[0] / output[0] / unit)
                    sums = [sum(row) for row in rows]
                    if name == "mean":
                        sums = [abs(s * 128) // len(rows[0]) * (1 if s > 0 else -1) for s in sums]
                    wanted = [clip(norm(s * m, n), output) for s in sums]
                assert found.reshape(-1).tolist() == wanted


SIZES = [((1, 1), (2, 3)), ((2, 3), (4, 6)), ((3, 5), (7, 4)), ((5, 4), (2, 3)), ((4, 7), (9, 13)), ((8, 6), (8, 6)),
         ((2, 2), (300, 3))]  # fmt: skip


@pytest.mark.parametrize(("size", "wanted"), SIZES)
@pytest.mark.parametrize("kind", [(0.05, -3, "int8"), (0.05, 117, "uint8"), (0.01, 30000, "uint16")])
def test_resizes(size: tuple[int, int], wanted: tuple[int, int], kind: Kind) -> None:
    x = drawn(kind, (1, *size, 2), 5)
    operands = [np.array(wanted, np.int32)]
    placed = [((1, *size, 2), kind)], ((1, *wanted, 2), kind)
    _, nearest = run(one("resize_nearest_neighbor", *placed, operands), x)
    _, bilinear = run(one("resize_bilinear", *placed, operands, align_corners=True), x)
    steps = [((n - 1) << 16) // out for n, out in zip(size, wanted, strict=True)]
    wide = [((n - 1) << 16) // (out - 1) for n, out in zip(size, wanted, strict=True)]
    for s, i, j, c in np.ndindex(2, *wanted, 2):
        near = [(step * k + 2**15) >> 16 for step, k in zip(wide, (i, j), strict=True)]
        assert nearest[s, 0, i, j, c] == x[s, 0, near[0], near[1], c]
        total = 0
        for right, below in product((0, 1), repeat=2):
            weight, place = 1, []
            for k, step, n, beyond in zip((i, j), steps, size, (below, right), strict=True):
                part = (k * step % 65536) >> 9
                weight *= part if beyond else 128 - part
                place.append(min(k * step // 65536 + beyond, n - 1))
            total += weight * int(x[s, 0, place[0], place[1], c])
        assert bilinear[s, 0, i, j, c] == total >> 14


@pytest.mark.parametrize("wanted", [(1, 4), (4, 1)])
def test_a_nearest_neighbor_of_one_row_or_column_is_refused(wanted: tuple[int, int]) -> None:
    kind: Kind = (0.05, 0, "int8")
    graph = one(
        "resize_nearest_neighbor", [((1, 3, 3, 1), kind)], ((1, *wanted, 1), kind), [np.array(wanted, np.int32)]
    )
    with pytest.raises(UnsupportedError, match=f"the output is {wanted[0]}x{wanted[1]}; GAP9's"):
        lower(graph, "gap9")


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_tiles(axis: int) -> None:
    kind: Kind = (0.05, 0, "int8")
    counts = [3 if a == axis else 1 for a in range(4)]
    x = drawn(kind, (1, 2, 3, 4))
    output = tuple(n * c for n, c in zip((1, 2, 3, 4), counts, strict=True))
    for numerics, wanted in (("exact", np.tile(x, (1, *counts))), ("nntool", np.repeat(x, 3, axis + 1))):
        graph = one("tile", [((1, 2, 3, 4), kind)], (output, kind), [np.array(counts, np.int32)], numerics=numerics)
        assert np.array_equal(run(graph, x)[1], wanted)


def test_concatenations_take_one_type() -> None:
    kind: Kind = (0.05, 2, "int8")
    others: list[tuple[Kind, bool]] = [
        (kind, True), ((0.05 * (1 + 9e-6), 2, "int8"), True), ((0.0501, 2, "int8"), False), ((0.05, 3, "int8"), False),
        ((0.05, 2, "uint8"), False),
    ]  # fmt: skip
    for other, is_taken in others:
        for kinds in ((kind, other), (other, kind)):
            graph = one("concatenation", [((1, 2), k) for k in kinds], ((1, 4), kind), axis=1)
            if is_taken:
                x, y = drawn(kind, (1, 2), 1), drawn(kind, (1, 2), 2)
                assert np.array_equal(run(graph, x, y)[1], np.concatenate([x, y], 2))
            else:
                with pytest.raises(UnsupportedError, match="is quantized otherwise than the output"):
                    lower(graph, "gap9")


WIDTHS = [
    ((0.051, 0, "int8"), (0.0002, 0, "int16"), False), ((0.0512, 0, "int8"), (0.0002, 0, "int16"), True),
    ((0.0002, 0, "int16"), (0.05129, 0, "int8"), True), ((0.0002, 0, "int16"), (0.0514, 0, "int8"), False),
    ((0.0002, 0, "int16"), (0.0512, 3, "int8"), False), ((0.0002, 32768, "uint16"), (0.0512, 0, "int8"), False),
    ((0.0512, 117, "uint8"), (0.0002, 0, "int16"), False), ((0.0002, 900, "uint16"), (0.06, 4, "uint8"), False),
    ((0.0512, 0, "int8"), (0.0512, 0, "int8"), False),
]  # fmt: skip
"""Two types, and whether NNTool shifts: |S_8 - 256 S_16| <= 1e-4, zero points 0, both signed.

Source: docs/differences/gap9.md.
"""


@pytest.mark.parametrize("numerics", ["exact", "nntool"])
@pytest.mark.parametrize(("kind", "output", "shifts"), WIDTHS)
def test_changes_of_width(kind: Kind, output: Kind, shifts: bool, numerics: str) -> None:
    x = drawn(kind, (1, 300))
    _, found = run(one("quantize", [((1, 300), kind)], ((1, 300), output), numerics=numerics), x)
    for code, made in zip(x.reshape(-1).tolist(), found.reshape(-1).tolist(), strict=True):
        value = floor((code - kind[1]) * kind[0] / output[0] + 0.5) + output[1]
        if shifts and numerics == "nntool":
            value = norm(code, 8) if kind[2] == "int16" else code << 8
        assert made == clip(value, output)


@pytest.mark.parametrize("scale", [1e-6, 0.05, 3.0])
def test_scales_that_nntool_takes_as_one(scale: float) -> None:
    """|S_a - S_b| <= 1e-8 + 1e-5 S_b, which is absolute for small ones."""
    room = 1e-8 + 1e-5 * scale
    for part, is_one in ((0.0, True), (0.99, True), (-0.99, True), (1.01, False), (-1.01, False)):
        a, b = np.array([scale, scale + part * room]), np.array([scale, scale])
        assert same_scales(a, b) is is_one
        assert same_scales(a[1:], b[:1]) is is_one


FILTERS = ["conv_2d", "depthwise_conv_2d", "fully_connected"]


def filtered(
    name: str, kind: Kind, output: Kind, weights: Array, bias: Array, zero_point: int, **options: Any
) -> Graph:
    """A filter of images [1, 5, 6, 4], or of rows [1, 4], whose channels have scales of their own."""
    scales = np.linspace(0.01, 0.03, bias.size)
    b, axis = GraphBuilder(name), 3 if name == "depthwise_conv_2d" else 0
    shape = (1, 4) if name == "fully_connected" else (1, 5, 6, 4)
    x = b.input("x", shape, DType(kind[2]), affine(kind))
    w = b.constant("w", weights, Affine(scales, np.full(1, zero_point), axis, 8, not zero_point, True))
    c = b.constant("b", bias, Affine(kind[0] * scales, np.zeros(1, np.int64), 0, 32))
    stride, dilation = options.get("stride", (1, 1)), options.get("dilation", (1, 1))
    size = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in
            zip((5, 6), weights.shape[1:3], dilation, stride, strict=False)] if len(shape) == 4 else []  # fmt: skip
    given = {"stride_h": stride[0], "stride_w": stride[1], "dilation_h_factor": dilation[0],
             "dilation_w_factor": dilation[1], "padding": "valid"} if len(shape) == 4 else {}  # fmt: skip
    return b.build([b.add(name, [x, w, c], (1, *size, bias.size), DType(output[2]), affine(output), **given)])


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ((0.05, -3, "int8"), (0.1, 4, "int8")),
        ((0.05, 117, "uint8"), (0.1, 90, "uint8")),
        ((0.05, -128, "int8"), (0.1, 0, "int8")),
        ((0.0003, 30000, "uint16"), (0.001, 32768, "uint16")),
        ((0.05, -3, "int8"), (2.0**-12, 0, "int32")),
    ],
)
def test_filters(name: str, kind: Kind, output: Kind) -> None:
    draw = np.random.default_rng(6)
    zero_point = 128 if kind[2].startswith("u") else 0
    shape = {"conv_2d": (4, 2, 3, 2), "depthwise_conv_2d": (1, 2, 3, 4), "fully_connected": (4, 4)}[name]
    weights = draw.integers(-127, 128, shape) + zero_point
    bias = draw.integers(-2000, 2000, 4).astype(np.int32)
    options: dict[str, Any] = {"stride": (2, 1), "dilation": (1, 2)} if len(shape) == 4 else {}
    graph = filtered(name, kind, output, weights.astype("uint8" if zero_point else "int8"), bias, zero_point, **options)
    x = drawn(kind, graph.tensors[graph.inputs[0]].shape, 4)
    params, found = run(graph, x)
    filter_ = params.filter
    pre = min(int(filter_.mul_bias.shift.min()), 8) if kind[2] == "uint16" else 0
    for s, i, j, o in np.ndindex(2, *(found.shape[2:] if found.ndim == 5 else (1, 1, 4))):
        if found.ndim == 3:
            taps = [(int(x[s, 0, c]), int(weights[o, c])) for c in range(4)]
        else:
            taps = [(int(x[s, 0, 2 * i + di, j + 2 * dj, o // 2 * 2 + c if name == "conv_2d" else o]),
                     int(weights[o, di, dj, c] if name == "conv_2d" else weights[0, di, dj, o]))
                    for di, dj, c in np.ndindex(2, 3, 2 if name == "conv_2d" else 1)]  # fmt: skip
        scale = float(np.linspace(0.01, 0.03, 4)[o]) * kind[0]
        m, n = int(filter_.mul_bias.multiplier[o]), int(filter_.mul_bias.shift[o])
        assert abs(m - scale / output[0] * 2.0**n) <= 0.5001
        total = sum((a - kind[1]) * (w - zero_point) for a, w in taps) + int(bias[o])
        total += floor(output[1] * (output[0] / scale) + 0.5) if output[1] else 0
        wanted = clip(norm(norm(total, pre) * m, n - pre), output)
        assert (found[s, 0, i, j, o] if found.ndim == 5 else found[s, 0, o]) == wanted


@pytest.mark.parametrize("sign", [1, -1])
def test_accumulators_end_with_int32(sign: int) -> None:
    """x + 128 reaches 255 times the weight from the bias alone."""
    kind, output = (0.05, -128, "int8"), (2.0**20, 0, "int8")
    weights = np.array([[sign, 0, 0, 0]], np.int8)
    last = 2**31 - 1 if sign > 0 else -(2**31)

    def of(bias: int, numerics: str = "exact") -> Graph:
        graph = filtered("fully_connected", kind, output, weights, np.array([bias], np.int32), 0)
        node = graph.nodes[0]
        graph.nodes[0] = replace(node, attributes=node.attributes.updated(numerics=numerics))
        return graph

    border = last - sign * 255
    lower(of(border), "gap9")
    with pytest.raises(UnsupportedError, match="accumulator is"):
        lower(of(border + sign), "gap9")
    lower(of(border + sign, "nntool"), "gap9")


def with_numerics(graph: Graph, **attributes: Any) -> Graph:
    node = graph.nodes[0]
    graph.nodes[0] = replace(node, attributes=node.attributes.updated(**attributes))
    return graph


@pytest.mark.parametrize("far", [0, 1, 2])
def test_products_of_single_channels_wrap_as_nntools(far: int) -> None:
    """The output's zero point, in units of a small accumulator, times M leaves 32 bits in so many channels."""
    kind, output = (0.05, 0, "int8"), (0.4, 200, "uint8")
    weights = np.random.default_rng(7).integers(-127, 128, (4, 4)).astype(np.int8)
    graph = filtered("fully_connected", kind, output, weights, np.zeros(4, np.int32), 0)
    (w, b) = graph.nodes[0].inputs[1:3]
    scales = np.array([167 / 256 * 2.0**-13] * far + [0.03] * (4 - far))
    for t, scale in ((w, scales), (b, scales * kind[0])):
        tensor = graph.tensors[t]
        graph.tensors[t] = replace(tensor, quantization=replace(tensor.affine, scale=scale))
    x = drawn(kind, (1, 4), 8)
    for numerics in ("exact", "nntool"):
        params, found = run(with_numerics(graph, numerics=numerics), x)
        filter_ = params.filter
        assert filter_.overflowing == tuple(range(far))
        for s, o in np.ndindex(2, 4):
            m, n = int(filter_.mul_bias.multiplier[o]), int(filter_.mul_bias.shift[o])
            scale = float(scales[o]) * kind[0]
            assert abs(m - scale / output[0] * 2.0**n) <= 0.5001
            total = sum(int(p) * int(q) for p, q in zip(x[s, 0], weights[o], strict=True))
            total += floor(output[1] * (output[0] / scale) + 0.5)
            y = wrap(wrap(total * m) + (1 << n >> 1)) >> n if numerics == "nntool" else norm(total * m, n)
            assert found[s, 0, o] == clip(y, output)


def test_a_scale_that_nntool_takes_an_input_for() -> None:
    """M 2^-N is about inside_scale S_w / S_y, and the padding is its zero point (docs/differences/gap9.md)."""
    kind, output = (0.05, -3, "int8"), (0.2, 0, "int8")
    weights = np.random.default_rng(7).integers(-127, 128, (4, 4)).astype(np.int8)
    for inside in (0.05, 0.11, 0.013):
        graph = filtered("fully_connected", kind, output, weights, np.zeros(4, np.int32), 0)
        for numerics in ("exact", "nntool"):
            given = with_numerics(graph, numerics=numerics, inside_scale=inside, inside_zero_point=17)
            filter_ = lower(given, "gap9").nodes[0].params.filter
            taken = inside if numerics == "nntool" else kind[0]
            for o, scale in enumerate(np.linspace(0.01, 0.03, 4)):
                m, n = int(filter_.mul_bias.multiplier[o]), int(filter_.mul_bias.shift[o])
                assert abs(m - taken * scale / output[0] * 2.0**n) <= 0.5001
            assert filter_.padding_code == (17 if numerics == "nntool" else -3)
