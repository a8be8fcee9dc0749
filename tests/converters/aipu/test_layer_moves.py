"""Layers that move, choose or count quantized values.

Beside their definition on the numbers that the quantized values stand for: equal.

They are built through the graph API; TFLite has no such operator, or golden data none of this form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.support.aipu_layers import MODES, Output, Ran, float_layer, run_layer
from tflq.errors import InputError, UnsupportedError
from tflq.graph import Array
from tflq.graph.attributes import Attribute

IMAGES = np.random.default_rng(20).normal(0, 2, (3, 2, 6, 5, 4)).astype(np.float32)


@dataclass(frozen=True)
class Move:
    """One layer, and what it does to an array [S, N, H, W, C]."""

    operator: str
    definition: Callable[[Array], Array]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    images: Array = field(default_factory=lambda: IMAGES)


def _batch_to_depth(x: Array) -> Array:
    return np.concatenate([x[:, 0::2], x[:, 1::2]], axis=-1)


def _data_stride(x: Array) -> Array:
    rows = np.concatenate([x[:, :, i : i + 2] for i in range(5)], axis=2)
    return np.concatenate([rows[:, :, :, j : j + 2] for j in (0, 2)], axis=3)


def _space_to_batch(x: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 1), (0, 0)))
    return np.concatenate([padded[:, :, i::2, j::3] for i in range(2) for j in range(3)], axis=1)


MOVES = [
    Move("batch_to_depth", _batch_to_depth, {"block_size": 2}),
    Move("crop", lambda x: x[:, :, 1:-1, :3], {"crops": np.array([[0, 2], [1, -1], [0, 3], [0, 9]])}),
    Move(
        "data_stride",
        _data_stride,
        {"kernel_y": 2, "kernel_x": 2, "stride_y": 1, "stride_x": 2},
    ),
    Move(
        "space_to_batch",
        _space_to_batch,
        {"block_size_y": 2, "block_size_x": 3, "pad_top": 1, "pad_bottom": 1, "pad_left": 0, "pad_right": 1},
    ),
    Move(
        "slice", lambda x: x[:, :, 5:1:-2, 1:4], {"begin": (0, 5, 1, 0), "end": (2, 1, 4, 4), "strides": (1, -2, 1, 1)}
    ),
    Move("transpose", lambda x: x.transpose(0, 3, 1, 4, 2), {"perm": (2, 0, 3, 1)}),
    Move(
        "pad",
        lambda x: np.pad(x, ((0, 0), (0, 0), (2, 1), (1, 3), (0, 0)), mode="reflect"),
        {"mode": "REFLECT", "pads": np.array([[0, 0], [2, 1], [1, 3], [0, 0]])},
    ),
    Move(
        "pad",
        lambda x: np.pad(x, ((0, 0), (0, 0), (2, 1), (0, 3), (0, 0)), mode="symmetric"),
        {"mode": "SYMMETRIC", "pads": np.array([[0, 0], [2, 1], [0, 3], [0, 0]])},
    ),
    Move("reduce", lambda x: x.max(axis=(2, 3), keepdims=True), {"method": "MAX", "axis": (1, 2)}),
    Move("arg_min_max", lambda x: x.argmax(axis=-1)[..., None], {"method": "MAX", "axis": 3}),
    Move(
        "arg_min_max",
        lambda x: x.shape[3] - 1 - x[:, :, :, ::-1].argmin(axis=3)[:, :, :, None],
        {"method": "MIN", "axis": 2, "select_last_index": True},
    ),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("move", MOVES, ids=lambda m: m.operator)
def test_a_move_moves_what_the_codes_stand_for(move: Move, mode: str) -> None:
    shape = move.definition(move.images).shape[1:]
    ran = run_layer(
        float_layer(move.operator, [move.images], [Output(shape)], **move.attributes), [move.images], MODES[mode]
    )
    np.testing.assert_array_equal(ran.outputs[0], move.definition(ran.inputs[0]))


def _run(operator: str, inputs: list[Array], outputs: list[Output], mode: str, **attributes: Attribute) -> Ran:
    return run_layer(float_layer(operator, inputs, outputs, **attributes), inputs, MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_filter_moves_kept_slices_to_the_front_and_counts_them(mode: str) -> None:
    selector = np.array([[1, 0, 2, 0], [0, 0, 0, 0]], np.int32)
    data = np.random.default_rng(21).normal(0, 2, (2, 3, 4, 2)).astype(np.float32)
    ran = _run("filter", [data, selector], [Output((3, 4, 2)), Output(())], mode, axis=1, num=1)
    np.testing.assert_array_equal(ran.codes[1], [2, 0])
    np.testing.assert_array_equal(ran.outputs[0][0][:, :2], ran.inputs[0][0][:, [0, 2]])
    assert not ran.codes[0][0][:, 2:].any()
    assert not ran.codes[0][1].any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [None, 1])
def test_repeat(axis: int | None, mode: str) -> None:
    data = np.random.default_rng(21).normal(0, 2, (2, 2, 3)).astype(np.float32)
    slices = 6 if axis is None else 3
    repeats = np.random.default_rng(21).integers(0, 3, (2, slices)).astype(np.int32)
    shape = (12,) if axis is None else (2, 6)
    attributes: dict[str, Attribute] = {} if axis is None else {"axis": axis}
    ran = _run("repeat", [data, repeats], [Output(shape)], mode, **attributes)
    for s in range(2):
        wanted = np.repeat(ran.inputs[0][s], repeats[s], axis=axis)
        part = tuple(slice(n) for n in wanted.shape)
        np.testing.assert_array_equal(ran.outputs[0][s][part], wanted)
        rest = np.ones(shape, bool)
        rest[part] = False
        assert not ran.codes[0][s][rest].any()


@pytest.mark.parametrize("mode", MODES)
def test_in_top_k_counts_a_tie_with_the_kth(mode: str) -> None:
    rows = np.array([[[4, 1, 3, 3, -2.0], [0.5, 0.25, -4, 4, 4]]], np.float32)
    for targets, wanted in (([2, 0], [1, 0]), ([3, 4], [1, 1]), ([1, 3], [0, 1])):
        ran = _run("in_top_k", [rows, np.array([targets], np.int32)], [Output((2,))], mode, k=2)
        np.testing.assert_array_equal(ran.codes[0], [wanted])


@pytest.mark.parametrize("mode", MODES)
def test_ctc_greedy_decoder_drops_repeats_then_blanks(mode: str) -> None:
    path = [[0, 0, 2, 0, 1, 1, 2], [2, 2, 1, 0, 0, 2, 0]]
    logits = np.eye(3, dtype=np.float32)[path][None] * 3 - 1
    lengths = np.array([[5, 0]], np.int32)
    wanted = {True: [[0, 0, 1], [1, 0, 0]], False: [[0, 0, 0, 1], [1, 0, 0, 0]]}
    for merges, classes in wanted.items():
        ran = _run("ctc_greedy_decoder", [logits, lengths], [Output((2, 8, 1, 1))], mode, merge_repeated=merges)
        for row, kept in zip(ran.codes[0].reshape(2, 8), classes, strict=True):
            assert row.tolist() == kept + [65535] * (8 - len(kept))


@pytest.mark.parametrize("mode", ["symmetric", "16 bits"])
@pytest.mark.parametrize("limits", [(-2.0, 2.0), (2.0, -2.0)])
def test_count_is_the_histogram(limits: tuple[float, float], mode: str) -> None:
    # The limits are whole quantized values and the bins as wide as 16 of them, so that nothing hangs on the rounding of
    # limits.
    codes = np.random.default_rng(21).integers(-80, 81, (2, 1, 60))
    data = np.concatenate([codes / 32.0, np.full((2, 1, 1), 127.5 / 32)], axis=2).astype(np.float32)
    ran = _run(
        "count",
        [data],
        [Output((1, 8))],
        mode,
        min=limits[0],
        max=limits[1],
        nbins=8,
        discrete=True,
    )
    for s in range(2):
        wanted = np.histogram(ran.inputs[0][s], 8, (-2.0, 2.0))[0]
        np.testing.assert_array_equal(ran.codes[0][s, 0], wanted if limits[0] < limits[1] else wanted[::-1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flatten", ["HW", "HWC", "NHWC", "NCHW"])
def test_what_pools_with_indices_returns_to_its_place(flatten: str, mode: str) -> None:
    x = np.random.default_rng(21).permutation(2 * 4 * 6 * 3).reshape(1, 2, 4, 6, 3).astype(np.float32) - 70
    window: dict[str, Attribute] = {"kernel_y": 2, "kernel_x": 3, "stride_y": 2, "stride_x": 3, "pad_top": 0}
    window |= {"pad_bottom": 0, "pad_left": 0, "pad_right": 0, "ceil_mode": False, "flatten_dim": flatten}
    pooled = _run("max_pooling_with_arg_max", [x], [Output((2, 2, 2, 3)), Output((2, 2, 2, 3))], mode, **window)
    blocks = pooled.inputs[0].reshape(1, 2, 2, 2, 2, 3, 3)
    np.testing.assert_array_equal(pooled.outputs[0], blocks.max(axis=(3, 5)))
    values = pooled.outputs[0].astype(np.float32)
    back = _run("upsample_by_index", [values, pooled.codes[1]], [Output((2, 4, 6, 3))], mode, flatten_dim=flatten)
    wanted = np.where(blocks == blocks.max(axis=(3, 5), keepdims=True), blocks, 0).reshape(1, 2, 4, 6, 3)
    np.testing.assert_allclose(back.outputs[0], wanted, atol=back.steps[0] / 2)


def test_refusals() -> None:
    x, places = IMAGES[:1], np.zeros((1, 2, 6, 5, 4), np.int32)
    selector, repeats = np.zeros((1, 4), np.int32), np.array([[4, 4]], np.int32)
    with pytest.raises(UnsupportedError, match="flatten_dim=CHW; allowed is HW, HWC, NHWC, NCHW"):
        _run("upsample_by_index", [x, places], [Output((2, 6, 5, 4))], "symmetric", flatten_dim="CHW")
    with pytest.raises(UnsupportedError, match="become 2 and 2; allowed is min below max"):
        _run("count", [x], [Output((2, 4))], "symmetric", min=0.1, max=0.1, nbins=4, discrete=True)
    with pytest.raises(UnsupportedError, match="has 6 slices on axis 1; allowed are the selector's 4"):
        _run("filter", [x, selector], [Output((2, 6, 5, 4)), Output(())], "symmetric", axis=1, num=1)
    with pytest.raises(InputError, match="8 slices in sample 0; allowed are 7"):
        _run("repeat", [np.ones((1, 2, 3), np.float32), repeats], [Output((7, 3))], "symmetric", axis=0)
