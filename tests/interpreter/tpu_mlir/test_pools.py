"""Pools, means, softmax and layers of reals beside docs/rules/tpu_mlir_operators.md, element by element."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest

from tests.support.draw import affine
from tests.support.tpu_mlir_layers import F32, FLOAT16, KINDS, drawn, one, rha, run, sat, searched, up
from tests.support.types import FLOAT32, INT8, UINT8
from tflq.errors import UnsupportedError
from tflq.graph import DType
from tflq.interpreter import lower

POOLS = [((2, 3), (1, 2), "valid"), ((3, 1), (2, 1), "same"), ((1, 4), (3, 2), "same"), ((3, 2), (1, 1), "same"),
         ((1, 1), (1, 1), "valid"), ((5, 4), (2, 3), "valid")]  # fmt: skip


def windows(kernel: tuple[int, int], stride: tuple[int, int], padding: str, size: tuple[int, int]) -> Any:
    """The shape of the output, and the taps inside the image for each of its places."""
    sizes = list(zip(size, kernel, stride, strict=True))
    reach = [(n - k) // s + 1 if padding == "valid" else -(-n // s) for n, k, s in sizes]
    before = [max(0, (o - 1) * s + k - n) // 2 * (padding == "same") for o, (n, k, s) in zip(reach, sizes, strict=True)]
    taps = {
        (i, j): [
            (a, b)
            for a in range(i * stride[0] - before[0], i * stride[0] - before[0] + kernel[0])
            for b in range(j * stride[1] - before[1], j * stride[1] - before[1] + kernel[1])
            if 0 <= a < size[0] and 0 <= b < size[1]
        ]
        for i, j in np.ndindex(*reach)
    }
    return reach, taps


def average(total: int, inside: int, taps: int, kinds: Any, scales: tuple[float, float], mode: str) -> int:
    """Section 6, and 9 where the mode is "manual"."""
    (_, z_x, _, z_y), ratio = kinds, scales[0] / scales[1]
    if mode == "symmetric":
        m, s = searched(ratio / taps, 8)
        return up(rha(Fraction(total * taps, inside)) * m, s)
    whole = total + (taps - inside) * z_x if z_x else total * taps / inside
    offset = (z_y - ratio * z_x) * (-1 if mode == "manual" else 1)
    return rha(float(F32(whole) * F32(ratio / taps) + F32(offset)))


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric", "manual"])
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(("kernel", "stride", "padding"), POOLS)
@pytest.mark.parametrize("fused", ["none", "relu"])
def test_averages(
    kernel: tuple[int, int], stride: tuple[int, int], padding: str, kinds: Any, mode: str, fused: str
) -> None:
    size, scales = (5, 6), (float(F32(0.05)), float(F32(0.041)))
    reach, taps = windows(kernel, stride, padding, size)
    x = drawn((1, *size, 2), kinds[0])
    options = {"filter_height": kernel[0], "filter_width": kernel[1], "stride_h": stride[0], "stride_w": stride[1]}
    graph = one("average_pool_2d", [((1, *size, 2), (kinds[0], affine(kinds[0], 0.05, kinds[1])))],
                ((1, *reach, 2), (kinds[2], affine(kinds[2], 0.041, kinds[3]))), padding=padding,
                asymmetric=mode != "symmetric", fused_activation_function=fused,
                formulas="manual" if mode == "manual" else "", **options)  # fmt: skip
    found = run(graph, x)
    least = kinds[3] if fused == "relu" else kinds[2].minimum
    for (i, j), places in taps.items():
        for s, c in np.ndindex(2, 2):
            total = sum(int(x[s, 0, a, b, c]) for a, b in places)
            wanted = average(total, len(places), kernel[0] * kernel[1], kinds, scales, mode)
            assert found[s, 0, i, j, c] == sat(max(wanted, least), kinds[2])


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize(("kernel", "stride", "padding"), POOLS)
@pytest.mark.parametrize("fused", ["none", "relu"])
def test_maxima_of_windows(
    kernel: tuple[int, int], stride: tuple[int, int], padding: str, dtype: DType, fused: str
) -> None:
    size = (5, 6)
    reach, taps = windows(kernel, stride, padding, size)
    kind = (dtype, affine(dtype, 0.05, 5))
    x = drawn((1, *size, 2), dtype, 1)
    options = {"filter_height": kernel[0], "filter_width": kernel[1], "stride_h": stride[0], "stride_w": stride[1]}
    found = run(one("max_pool_2d", [((1, *size, 2), kind)], ((1, *reach, 2), kind), padding=padding,
                    fused_activation_function=fused, **options), x)  # fmt: skip
    least = 0 if fused == "relu" else dtype.minimum
    for (i, j), places in taps.items():
        for s, c in np.ndindex(2, 2):
            assert found[s, 0, i, j, c] == max([least, *(int(x[s, 0, a, b, c]) for a, b in places)])


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("axes", [[1, 2], [2, 1], [-3, -2]])
def test_means_of_images(kinds: Any, mode: str, axes: list[int]) -> None:
    scales = (float(F32(0.05)), float(F32(0.041)))
    x = drawn((2, 3, 5, 2), kinds[0], 2)
    for is_kept in (True, False):
        y = ((2, 1, 1, 2) if is_kept else (2, 2), (kinds[2], affine(kinds[2], 0.041, kinds[3])))
        graph = one("mean", [((2, 3, 5, 2), (kinds[0], affine(kinds[0], 0.05, kinds[1])))], y,
                    [np.array(axes, np.int32)], keep_dims=is_kept, asymmetric=mode == "asymmetric")  # fmt: skip
        found = run(graph, x).reshape(2, 2, 2)
        for s, n, c in np.ndindex(2, 2, 2):
            wanted = average(int(x[s, n, :, :, c].astype(int).sum()), 15, 15, kinds, scales, mode)
            assert found[s, n, c] == sat(wanted, kinds[2])


@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 3, 4, 2), [1]), ((2, 3, 4, 2), [1, 3]), ((3, 4), [1]), ((2, 3, 4), [1, 2])]
)
def test_means_over_other_axes_are_in_float16(shape: tuple[int, ...], axes: list[int]) -> None:
    left = tuple(n for a, n in enumerate(shape) if a not in axes)
    x = drawn(shape, FLOAT16, 3)
    found = run(
        one("mean", [(shape, (FLOAT16, None))], (left, (FLOAT16, None)), [np.array(axes, np.int32)], keep_dims=False), x
    )
    count = int(np.prod([shape[a] for a in axes]))
    total = np.sum(x.astype(np.float64), axis=tuple(a + 1 for a in axes)).astype(np.float32)
    assert found.tolist() == (total * F32(np.float16(1 / count))).astype(np.float16).tolist()
    kind = (INT8, affine(INT8, 0.05))
    graph = one("mean", [(shape, kind)], (left, kind), [np.array(axes, np.int32)], keep_dims=False, asymmetric=False)
    with pytest.raises(UnsupportedError, match="known are axes 1 and 2 of rank 4"):
        lower(graph, "tpu_mlir")


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("axes", [[0], [1], [2], [1, 2], [0, 2]])
def test_the_largest_along_axes(axes: list[int], is_kept: bool) -> None:
    kind, shape = (INT8, affine(INT8, 0.05, 3)), (2, 3, 4)
    x = drawn(shape, INT8, 4)
    left = tuple(1 if a in axes else n for a, n in enumerate(shape) if is_kept or a not in axes)
    found = run(one("reduce_max", [(shape, kind)], (left, kind), [np.array(axes, np.int32)], keep_dims=is_kept), x)
    assert found.shape == (2, *left)
    for sample, made in zip(x, found, strict=True):
        rows = np.moveaxis(sample, axes, range(-len(axes), 0)).reshape(
            *(n for a, n in enumerate(shape) if a not in axes), -1
        )
        assert made.reshape(-1).tolist() == [max(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("scale", [0.004, 0.05, 0.7])
def test_softmax(dtype: DType, scale: float) -> None:
    shape, y = (1, 3, 5), (UINT8, affine(UINT8, 1 / 255))
    x = drawn(shape, dtype, 5)
    x[1] = np.arange(15).reshape(shape) * 3
    found = run(one("softmax", [(shape, (dtype, affine(dtype, scale)))], (shape, y), beta=1.0), x)
    for row, made in zip(x.reshape(-1, 5).tolist(), found.reshape(-1, 5).tolist(), strict=True):
        e = [F32(exp(-(max(row) - q) * float(F32(scale)))) for q in row]
        total = F32(0)
        for power in e:
            total = F32(total + power)
        assert made == [sat(rha(float(F32(F32(power / total) / F32(1 / 255)))), UINT8) for power in e]
    with pytest.raises(UnsupportedError, match=r"beta is 2\.0"):
        lower(one("softmax", [(shape, (dtype, affine(dtype, scale)))], (shape, y), beta=2.0), "tpu_mlir")


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32])
@pytest.mark.parametrize("shape", [(3, 5), (1, 2, 2, 4), (2, 1)])
def test_normalizations(dtype: DType, shape: tuple[int, ...]) -> None:
    x, epsilon = drawn(shape, dtype, 6), 1e-3
    gamma, beta = np.random.default_rng(6).normal(size=(2, shape[-1])).astype(np.float32)
    found = run(
        one("layer_normalization", [(shape, (dtype, None))], (shape, (FLOAT32, None)), [gamma, beta], epsilon=epsilon),
        x,
    )
    g, b = (c.astype(dtype.storage).astype(np.float32) for c in (gamma, beta))

    def mean(row: list[np.float32]) -> np.float32:
        total = row[0]
        for value in row[1:]:
            total = total + value
        return total / F32(len(row))

    for row, made in zip(x.reshape(-1, shape[-1]).astype(np.float32), found.reshape(-1, shape[-1]), strict=True):
        centered = [value - mean(list(row)) for value in row]
        inverse = F32(1) / np.sqrt(mean([c * c for c in centered]) + F32(epsilon))
        assert made.tolist() == [float(c * inverse * g[i] + b[i]) for i, c in enumerate(centered)]


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize(("size", "wanted"), [((3, 4), (7, 5)), ((3, 4), (1, 2)), ((3, 4), (2, 1)), ((1, 1), (3, 2)),
                                              ((5, 6), (5, 6)), ((6, 5), (3, 2))])  # fmt: skip
def test_bilinear_resizes(dtype: DType, align: bool, size: tuple[int, int], wanted: tuple[int, int]) -> None:
    x = drawn((1, *size, 2), dtype, 7)
    found = run(one("resize_bilinear", [((1, *size, 2), (dtype, None))], ((1, *wanted, 2), (FLOAT32, None)),
                    [np.array(wanted, np.int32)], align_corners=align), x)  # fmt: skip
    places = []
    for old, new in zip(size, wanted, strict=True):
        row = []
        for i in range(new):
            if align:
                position = F32(i) * (F32(old - 1) / F32(new - 1)) if new > 1 else F32(0)
            else:
                position = (F32(i) + F32(0.5)) * (F32(old) / F32(new)) - F32(0.5)
            position = min(max(position, F32(0)), F32(old - 1))
            low = int(position)
            row.append((low, min(low + 1, old - 1), position - F32(low)))
        places.append(row)
    real = x.astype(np.float32)
    for s, i, j, c in np.ndindex(2, *wanted, 2):
        (top, bottom, down), (left, right, across) = places[0][i], places[1][j]
        a, b = (
            real[s, 0, top, k, c] + down * (real[s, 0, bottom, k, c] - real[s, 0, top, k, c]) for k in (left, right)
        )
        assert found[s, 0, i, j, c] == a + across * (b - a)
