"""Every operator of TFLite that the target takes: quantized values near the float model's numbers.

The others are refused.

The corpus has one small model an operator; TFLite's own kernels in float judge (arithmetic `float` equals them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files
from tflq.converters.aipu import AIPU
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import model_from_bytes, read_model
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, Tensor
from tflq.interpreter import Engine, lower

MODELS = data_files("corpus", "single_op_float")
REFUSED = (
    "ATAN2",
    "NON_MAX_SUPPRESSION_V4",
    "SHAPE",
    "WHERE",
)
# Results that jump: a quantized value of the input decides between neighbors. How many may differ.
JUMPS = {
    "ARG_MAX": 0.02,
    "ARG_MIN": 0.02,
    "CAST": 0.45,  # real to integer: Compass rounds, TFLite truncates
    "CEIL": 0.03,
    "EQUAL": 0.02,
    "FLOOR": 0.03,
    "FLOOR_DIV": 0.05,
    "GREATER": 0.02,
    "GREATER_EQUAL": 0.02,
    "LESS": 0.02,
    "LESS_EQUAL": 0.02,
    "LOGICAL_AND": 0.02,
    "LOGICAL_NOT": 0.02,
    "LOGICAL_OR": 0.02,
    "NON_MAX_SUPPRESSION_V5": 0.3,
    "NOT_EQUAL": 0.02,
    "ONE_HOT": 0.0,
    "REDUCE_ALL": 0.03,
    "REDUCE_ANY": 0.02,
    "ROUND": 0.03,
    "SELECT_V2": 0.02,
    "SIGN": 0.02,
    "SIGN2": 0.02,
}
# Relative to the span of the output, where more than 4 % are lost: powers of powers, steep functions near 0, and
# normalizations whose small denominators have few quantized values.
WIDE = {
    "DIV": 0.05,
    "LAYERNORM": 0.1,
    "LOCAL_RESPONSE_NORMALIZATION": 0.2,
    "LOG": 0.06,
    "POW2IN": 0.3,
    "SELU": 0.1,
    "SQRT": 0.08,
}
# Compass's own rules lose more at 16 bits: reciprocals of few units, a common scale of 13 bits.
WIDE_AT_16 = {"SCATTER_ND": 0.2, "SOFTSIGN": 0.2}
BUDGET = 0.04
SETTINGS = {
    "symmetric": ["activations=symmetric"],
    "asymmetric": ["activations=asymmetric"],
    "16 bits": ["activation_bits=16", "weight_bits=16", "lut_items_in_bits=10"],
    "int8": ["activations=asymmetric"],
}
"""Of the float model; the last of an int8 one."""


def _draw(rng: np.random.Generator, tensor: Tensor, samples: int) -> Array:
    shape = (samples, *tensor.shape)
    if tensor.dtype is DType.FLOAT32:
        return rng.normal(size=shape).astype(np.float32)
    return rng.integers(0, 4, shape).astype(tensor.dtype.storage)


def _real(codes: Array, tensor: Tensor) -> Array:
    if tensor.quantization is None:
        return codes.astype(np.float64)
    return (codes.astype(np.float64) - tensor.affine.zero_point[0]) * tensor.affine.scale[0]


def _codes(real: Array, tensor: Tensor) -> Array:
    return AIPU.encode(real, tensor) if tensor.quantization is not None else real.astype(tensor.dtype.storage)


def _int8(model: Model, ranged: Graph) -> Graph:
    """Return the model as TFLite's own quantizer makes it: int8 where its kernels have it."""
    tflite = find_target("tflite")
    files = tflite.emit(tflite.quantize(ranged, parse_settings(tflite.settings)), model)
    return model_from_bytes(next(iter(files.values())), "int8").main


def _stored(real: Array, tensor: Tensor) -> Array:
    """Return TFLite's quantized values of an input; plain values as they are."""
    if tensor.quantization is None:
        return real
    scale, zero_point = tensor.affine.scale[0], tensor.affine.zero_point[0]
    codes: Array = np.clip(np.rint(real / scale) + zero_point, -128, 127).astype(tensor.dtype.storage)
    return codes


def _both(model: Model, form: str, real: list[Array] | None = None) -> list[tuple[Array, Array]]:
    """Return our numbers and the float model's of each output, of given or of random inputs."""
    return _both_with_names(model, form, real)[0]


def _both_with_names(
    model: Model, form: str, real: list[Array] | None = None
) -> tuple[list[tuple[Array, Array]], Mapping[str, str]]:
    """Return what `_both` returns, and the departures: layers on which Compass errs, as the clip of an int8 file."""
    graph = model.main
    settings = parse_settings(AIPU.settings, SETTINGS[form])
    rng = np.random.default_rng(1)
    real = real or [_draw(rng, graph.tensors[t], 8) for t in graph.inputs]
    expected = Engine(lower(graph)).run(real)
    ranged = calibrate(graph, real, StatisticsOptions("extrema"))
    if form == "int8":
        stored = _int8(model, ranged)
        codes = [_stored(x, stored.tensors[t]) for x, t in zip(real, stored.inputs, strict=True)]
        ranged = calibrate(stored, codes, StatisticsOptions("extrema"))
    quantized = lower(AIPU.quantize(ranged, settings), AIPU.arithmetic)
    codes = [_codes(x, quantized.tensors[t]) for x, t in zip(real, quantized.inputs, strict=True)]
    found = Engine(quantized).run(codes)
    pairs = zip(quantized.outputs, graph.outputs, strict=True)
    results = [(_real(found[ours], quantized.tensors[ours]), expected[t].astype(np.float64)) for ours, t in pairs]
    return results, AIPU.departures(quantized)


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
@pytest.mark.parametrize("form", SETTINGS)
def test_close_to_the_float_model(path: Path, form: str) -> None:
    model = read_model(path)
    problems = AIPU.check(model.main, parse_settings(AIPU.settings))
    if path.stem in REFUSED:
        assert problems or not model.main.nodes
        return
    assert problems == ()
    if path.stem == "FLOOR_MOD":
        with pytest.raises(UnsupportedError, match="allowed is a range without 0"):
            _both(model, form)
        return
    if (path.stem, form) == ("RELU_0_TO_1", "int8"):
        # two operands of one type: the Optimizer forgets the scale of the result, and so does tflq, by name
        assert list(_both_with_names(model, form)[1]) == ["clip_by_value/Minimum"]
        return
    for ours, theirs in _both(model, form):
        assert ours.shape == theirs.shape
        error = np.abs(ours - theirs)
        is_index = np.array_equal(theirs, np.rint(theirs)) and path.stem == "TOPK_V2"
        if path.stem in JUMPS or is_index:
            span = theirs.max() - theirs.min()
            assert (error > max(BUDGET * span, 1e-6)).mean() <= JUMPS.get(path.stem, 0.05)
        else:
            allowed = (WIDE_AT_16 if form == "16 bits" else WIDE).get(path.stem, WIDE.get(path.stem, BUDGET))
            assert error.max() <= allowed * (theirs.max() - theirs.min())


# Operators that the corpus writes with others, or not at all.
F32, SHAPE = DType.FLOAT32, (1, 4, 5, 6)
OTHERS: dict[str, Callable[[GraphBuilder, int], int]] = {
    "embedding_lookup": lambda b, x: b.add(
        "embedding_lookup",
        (b.input("ids", (3,), DType.INT32), b.constant("rows", np.linspace(-1, 2, 24, dtype=np.float32).reshape(4, 6))),
        (3, 6),
        F32,
    ),
    "expand_dims": lambda b, x: b.add("expand_dims", (x, b.constant("axis", np.int32(1))), (1, 1, 4, 5, 6), F32),
    "floor_mod": lambda b, x: b.add("floor_mod", (x, b.constant("divisor", np.float32(1.25))), SHAPE, F32),
    "logical_not": lambda b, x: b.add(
        "logical_not", (b.add("greater", (x, b.constant("zero", np.float32(0))), SHAPE, DType.BOOL),), SHAPE, DType.BOOL
    ),
    "prelu": lambda b, x: b.add(
        "prelu", (x, b.constant("slopes", np.linspace(-0.5, 1.5, 6, dtype=np.float32).reshape(1, 1, 6))), SHAPE, F32
    ),
    "relu_0_to_1": lambda b, x: b.add("relu_0_to_1", (x,), SHAPE, F32),
    "select_v2": lambda b, x: b.add(
        "select_v2", (b.input("condition", SHAPE, DType.BOOL), x, b.constant("half", np.float32(0.5))), SHAPE, F32
    ),
    "squeeze": lambda b, x: b.add("squeeze", (x,), (4, 5, 6), F32, squeeze_dims=(0,)),
}


@pytest.mark.parametrize("form", SETTINGS)
@pytest.mark.parametrize("operator", OTHERS)
def test_operators_beside_the_corpus(operator: str, form: str) -> None:
    builder = GraphBuilder()
    graph = builder.build((OTHERS[operator](builder, builder.input("x", SHAPE, F32)),))
    ((ours, theirs),) = _both(Model([graph], source="m.tflite"), form)
    assert ours.shape == theirs.shape
    error = np.abs(ours - theirs)
    if operator == "logical_not":
        assert (error > 0).mean() < 0.02
    elif operator == "floor_mod":
        assert (error > 0.05).mean() < 0.03  # where the quotient is nearly whole, the result jumps
    else:
        assert error.max() < 0.02 * (theirs.max() - theirs.min())


def test_suppression_at_16_bits() -> None:
    """NON_MAX_SUPPRESSION_V4: the boxes that stay and their count, of boxes that lie apart or nearly on each other.

    At 8 bits Compass's areas, shifted by 13, are 0 for boxes like these.
    """
    builder = GraphBuilder()
    boxes, scores = builder.input("boxes", (12, 4), F32), builder.input("scores", (12,), F32)
    constants = [
        builder.constant("limit", np.int32(6)),
        *(builder.constant(f"t{v}", np.float32(v)) for v in (0.5, 0.1)),
    ]
    outputs = builder.tensor("kept", (6,), DType.INT32), builder.tensor("count", (), DType.INT32)
    builder.node("non_max_suppression_v4", (boxes, scores, *constants), outputs)
    graph = builder.build(outputs)
    corners = np.array([[40 * i, 0, 40 * i + 30, 30] for i in range(4)], np.float32)
    near = np.concatenate([corners, corners + 1, corners + 2])[None]
    order = np.linspace(0.15, 0.95, 12, dtype=np.float32)[None]
    for ours, theirs in _both(Model([graph], source="m.tflite"), "16 bits", [near, order]):
        np.testing.assert_array_equal(ours, theirs)
