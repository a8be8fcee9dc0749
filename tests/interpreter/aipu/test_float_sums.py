"""Sums in float32 as the Optimizer's forward has them, against Python's integers rounded where it rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.graph import Array, DType, Graph
from tflq.graph.builder import GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.accumulate.sequential import cascade_sums
from tflq.interpreter.accumulate.transposed import TransposedWindow, prepare_transposed
from tflq.interpreter.kernels.aipu.float_sums import (
    AMD,
    FLOAT_SUMS,
    INTEL,
    float_products,
    float_transposed,
    sums_of_weights,
)
from tflq.interpreter.kernels.aipu.scales import affine_of
from tflq.interpreter.operands.sliding_windows import Window


def _in_order(x: list[int], y: list[int], is_fused: bool) -> int:
    """Return the sum by Python's integers: all numbers stay below 2^53, so float64 holds them before each rounding."""
    total = 0
    for a, b in zip(x, y, strict=True):
        product = a * b if is_fused else int(np.float32(a * b))
        total = int(np.float32(total + product))
    return total


def _whole(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-32768, 32768, shape)


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "rank", "library", "is_fused"),
    [
        (12, 16, 12, 4, INTEL, True),
        (6, 8, 6, 4, INTEL, False),
        (3, 8, 16, 3, INTEL, False),
        (3, 8, 16, 2, INTEL, True),
        (12, 12, 8, 4, INTEL, True),
        (12, 12, 8, 4, AMD, False),
        (12, 16, 12, 4, AMD, True),
    ],
)
def test_products_are_added_in_order(
    rows: int, depth: int, columns: int, rank: int, library: str, is_fused: bool
) -> None:
    rng = np.random.default_rng(8)
    x, y = _whole(rng, rows, depth), _whole(rng, depth, columns)
    found = float_products(x, y, rank, library)
    wanted = [[_in_order(x[i].tolist(), y[:, j].tolist(), is_fused) for j in range(columns)] for i in range(rows)]
    assert found.astype(np.int64).tolist() == wanted
    assert np.any(found != x @ y)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (29, [-30479148, -40256116, -28560804]),
        (100, [-161786912, -158704992, -150763696]),
        (1157, [-1519615616, -1589867008, -1547167360]),
        (5001, [-6786393088, -7030480896, -6864824832]),
        (40003, [-55465803776, -55165308928, -55419949056]),
    ],
)
def test_sums_of_weights_are_the_tools(size: int, wanted: list[int]) -> None:
    """What PyTorch 2.13 gives for (w * zp).sum(dim=1), the Optimizer's expression; not the rounded exact sum."""
    weights = np.random.default_rng(size).integers(-2047, 2048, (3, size)) + 900
    found = sums_of_weights(-1531, weights)
    assert found.dtype == np.float32
    assert found.astype(np.int64).tolist() == wanted
    assert np.any(found != (weights * -1531).sum(axis=1).astype(np.float32))
    assert sums_of_weights(0, weights).tolist() == [0, 0, 0]


def test_a_short_sum_of_weights() -> None:
    """Fewer than 8 numbers: four chains of one, the others added to the first; PyTorch 2.13 gives the same."""
    rows = np.float32([[16777216, 1, 1, 1, 1, 1, 1], [1, 1, 1, 16777216, 1, 1, 1], [1, 16777216, 1, 1, 1, 1, 1]])
    assert cascade_sums(rows).astype(np.int64).tolist() == [16777216, 16777222, 16777220]


def test_taps_are_added_last_to_first_and_then_the_bias() -> None:
    rng = np.random.default_rng(9)
    x, weights, bias = _whole(rng, 1, 1, 4, 5, 7), _whole(rng, 3, 3, 3, 7), rng.integers(-(1 << 30), 1 << 30, 3)
    place = TransposedWindow(Window((3, 3), (2, 2), (1, 1), 0, 0, 0, 0), (9, 11))
    found = float_transposed(prepare_transposed(weights, place, 1 << 16), x, bias)
    for oy, ox, o in [(0, 0, 0), (2, 2, 1), (4, 6, 2), (3, 4, 0), (8, 10, 1)]:
        total = np.float32(0)
        for ky in (2, 1, 0):
            for kx in (2, 1, 0):
                iy, ix = (oy - ky) // 2, (ox - kx) // 2
                if (oy - ky) % 2 or (ox - kx) % 2 or not (0 <= iy < 4 and 0 <= ix < 5):
                    continue
                one = _in_order(x[0, 0, iy, ix].tolist(), weights[o, ky, kx].tolist(), True)
                total = np.float32(total + np.float32(one))
        assert found[0, 0, oy, ox, o] == np.float32(total + np.float32(bias[o]))


def _product(in_float: bool) -> Graph:
    builder = GraphBuilder()
    kind = affine_of(np.float32(100), 0, 16, True)
    x = builder.input("x", (1, 12, 16), DType.INT16, kind)
    y = builder.input("y", (1, 16, 12), DType.INT16, kind)
    wide = affine_of(np.float32(2**-8), 0, 16, True)
    keys = {"trans_a": False, "trans_b": False, FLOAT_SUMS: in_float}
    out = builder.add("mat_mul", (x, y), (1, 12, 12), DType.INT16, wide, **keys)
    return builder.build((out,))


def test_a_layer_adds_exactly_unless_it_is_told() -> None:
    rng = np.random.default_rng(10)
    x, y = _whole(rng, 400, 1, 12, 16).astype(np.int16), _whole(rng, 400, 1, 16, 12).astype(np.int16)
    graphs = [lower(_product(told), "aipu") for told in (False, True)]
    exact, single = (Engine(graph).run([x, y])[graph.outputs[0]].astype(np.int64) for graph in graphs)
    assert np.array_equal(exact, np.clip(np.rint((x.astype(np.int64) @ y) * _multiplier()), -32768, 32767))
    assert np.abs(exact - single).max() == 1


def _multiplier() -> float:
    (node,) = lower(_product(False), "aipu").nodes
    rescale = node.params.rescale  # type: ignore[union-attr]
    return float(rescale.m[0]) * 2.0 ** -float(rescale.n[0])


@pytest.mark.parametrize(
    ("kernel", "stride"),
    [((4, 4), (1, 1)), ((4, 6), (2, 2)), ((4, 6), (2, 3)), ((5, 4), (1, 2)), ((4, 5), (2, 2)), ((4, 4), (3, 1))],
)
def test_large_kernels_are_added_by_columns(kernel: tuple[int, int], stride: tuple[int, int]) -> None:
    """One fused sum down each column of taps, or over all taps where the stride does not divide the kernel."""
    rng = np.random.default_rng(11)
    height, width, depth, outputs = 3, 4, 3, 2
    x, weights = _whole(rng, 1, 1, height, width, depth), _whole(rng, outputs, *kernel, depth)
    bias = rng.integers(-(1 << 30), 1 << 30, outputs)
    sizes = tuple((n - 1) * s + k for n, s, k in zip((height, width), stride, kernel, strict=True))
    place = TransposedWindow(Window(kernel, stride, (1, 1), 0, 0, 0, 0), (sizes[0], sizes[1]))
    found = float_transposed(prepare_transposed(weights, place, 1 << 16), x, bias)
    is_falling, differs = stride == (1, 1), 0
    order = [list(range(n))[:: -1 if is_falling else 1] for n in kernel]
    is_apart = all(k % s == 0 for k, s in zip(kernel, stride, strict=True))
    columns = [[(ky, kx) for ky in order[0]] for kx in order[1]]
    groups = columns if is_apart else [[(ky, kx) for ky in order[0] for kx in order[1]]]
    for oy, ox, o in np.ndindex(*sizes, outputs):
        total, exact = np.float32(0), 0
        for group in groups:
            numbers: tuple[list[int], list[int]] = ([], [])
            for ky, kx in group:
                (iy, ry), (ix, rx) = divmod(oy - ky, stride[0]), divmod(ox - kx, stride[1])
                if ry == 0 == rx and 0 <= iy < height and 0 <= ix < width:
                    numbers[0].extend(x[0, 0, iy, ix].tolist())
                    numbers[1].extend(weights[o, ky, kx].tolist())
            total = np.float32(total + np.float32(_in_order(*numbers, True)))
            exact += sum(a * b for a, b in zip(*numbers, strict=True))
        assert found[0, 0, oy, ox, o] == np.float32(total + np.float32(bias[o])), (oy, ox, o)
        differs += int(total) != int(np.float32(exact))
    assert differs


def test_batch_norm_rounds_products_and_sums() -> None:
    """Products of 16 by 16 bits and their sums go through float32 (docs/rules/aipu/values.md#linear-layers)."""
    builder, rng = GraphBuilder(), np.random.default_rng(12)
    weights, biases = _whole(rng, 4), rng.integers(-(1 << 30), 1 << 30, 4)
    wide = affine_of(np.float32(1), 0, 16, True)
    x = builder.input("x", (1, 500, 4), DType.INT16, wide)
    w = builder.constant("layer/weights", weights.astype(np.int16), wide)
    b = builder.constant("layer/biases", biases.astype(np.int32), affine_of(np.float32(1), 0, 32, True))
    keys = {"axis": 2, "with_activation": "NONE"}
    out = affine_of(np.float32(2**-15), 0, 16, True)
    t = builder.tensor("y", (1, 500, 4), DType.INT16, out)
    builder.node("batch_norm", (x, w, b), (t,), 1, None, **keys)
    graph = builder.build((t,))
    graph.nodes[0] = replace(graph.nodes[0], name="layer")
    lowered, codes = lower(graph, "aipu"), _whole(rng, 20, 1, 500, 4)
    found = Engine(lowered).run([codes.astype(np.int16)])[t]
    rescale = lowered.nodes[0].params.filter.rescale  # type: ignore[union-attr]
    m, n = int(rescale.m[0]), int(rescale.n[0])
    products = (codes.astype(np.float64) * weights).astype(np.float32)
    single = (products.astype(np.float64) + np.float32(biases)).astype(np.float32).astype(np.int64)
    exact = codes * weights + biases
    wanted, others = (np.clip(np.rint(v * m / 2**n), -32768, 32767) for v in (single, exact))
    assert np.array_equal(found, wanted)
    assert np.any(wanted != others)


@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("depth", [1, 257, 258, 259, 700])
def test_products_of_8_bits_are_exact(depth: int, trans_a: bool, trans_b: bool) -> None:
    """Sums of 255 * 255: at depth 258 the last that float32 holds; all of them are the integers' own."""
    builder, rng = GraphBuilder(), np.random.default_rng(13)
    shapes = [(1, depth) if not trans_a else (depth, 1), (depth, 40) if not trans_b else (40, depth)]
    full = affine_of(np.float32(1), 0, 8, False)
    x, y = (builder.input(name, shape, DType.UINT8, full) for name, shape in zip("xy", shapes, strict=True))
    keys = {"trans_a": trans_a, "trans_b": trans_b}
    kind = affine_of(np.float32(2.0**-10), 0, 16, False)
    graph = lower(builder.build((builder.add("mat_mul", (x, y), (1, 40), DType.UINT16, kind, **keys),)), "aipu")
    codes = [rng.integers(200, 256, (200, *shape)).astype(np.uint8) for shape in shapes]
    found = Engine(graph).run(codes)[graph.outputs[0]]
    left, right = (np.swapaxes(c, 1, 2) if turn else c for c, turn in zip(codes, (trans_a, trans_b), strict=True))
    total = np.einsum("sik,skj->sij", left.astype(np.int64), right.astype(np.int64))
    rescale = graph.nodes[0].params.rescale  # type: ignore[union-attr]
    m, n = int(rescale.m[0]), int(rescale.n[0])
    assert np.array_equal(found, np.clip(np.rint(total * m / 2**n), 0, 65535))
