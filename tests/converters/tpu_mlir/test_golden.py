"""Every tensor, constant, multiplier and shift of the golden runs of TPU-MLIR, to the bit."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pytest

from tests.support.tpu_mlir_golden import CASES, Golden, golden, golden_constants, golden_json, our_name
from tflq.converters.tpu_mlir.emit import integers_of
from tflq.graph import Affine, Array
from tflq.interpreter.kernels.tpu_mlir.activations import PReluParams, SoftmaxParams, TableParams
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams
from tflq.interpreter.layers.linear import ConvolutionLayer, ProductLayer

TYPES = {"i8": "int8", "u8": "uint8"}
WITH_JSON = [case for case in CASES if case != ("mini", "asym")]


@pytest.mark.parametrize(("model", "mode"), CASES)
def test_every_tensor(model: str, mode: str) -> None:
    run = golden(model, mode)
    pairs = list(run.pairs())
    assert len(pairs) == len(run.tensors) >= 12
    for name, theirs, ours in pairs:
        assert np.array_equal(ours.astype(np.float32), theirs), name


@pytest.mark.parametrize(("model", "mode"), [case for case in WITH_JSON if case[0] != "mini"])
def test_types_multipliers_and_shifts(model: str, mode: str) -> None:
    run = golden(model, mode)
    names = {t.name: t for t in run.graph.tensors}
    for name, theirs in golden_json(model, mode).items():
        ours = our_name(name, run.values)
        affine = names[ours].quantization
        assert isinstance(affine, Affine), name
        assert names[ours].dtype.value == TYPES[theirs["type"]], name
        assert (float(affine.scale[0]), int(affine.zero_point[0])) == (theirs["scale"], theirs["zero_point"]), name
        found = integers_of(run.nodes[ours])
        if "reshape" in name:
            continue
        for key in ("multiplier", "rshift"):
            if key in theirs:
                assert np.array_equal(np.atleast_1d(found[key]), np.atleast_1d(theirs[key])), (name, key)
        for key in ("pool_scale", "pool_offset"):
            if key in theirs:
                assert np.float32(found[key]) == np.float32(theirs[key]), (name, key)


def test_multipliers_of_mini() -> None:
    run, theirs = golden("mini", "sym"), golden_json("mini", "sym")
    for name, key in (("c1_Conv", "conv1"), ("c2_Conv", "conv2")):
        params = run.nodes[name].params
        assert isinstance(params, ConvolutionLayer)
        assert isinstance(params.filter, FilterParams)
        rescale = params.filter.rescale
        found = np.stack([rescale.multiplier, rescale.shift, params.filter.bias], axis=1)
        assert found.tolist() == theirs[key]


@pytest.mark.parametrize(("model", "mode"), [case for case in CASES if case[0] != "mini"])
def test_constants(model: str, mode: str) -> None:
    run = golden(model, mode)
    constants = golden_constants(model, mode)
    assert constants
    for key, theirs in constants.items():
        assert np.array_equal(_ours(run, key), theirs.reshape(-1)), key


def _ours(run: Golden, key: str) -> Array:
    """Return one of our constants in TPU-MLIR's order of elements."""
    if key == "sl_f16":  # slopes of the asymmetric PRelu, the bits of float16
        return _numbers(run, "pr_PRelu", PReluParams).slope.reshape(-1).view(np.uint16)
    name, what = key.split("_")[0], "_".join(key.split("_")[2:])
    node = next(n for n in run.nodes if n.startswith(f"{name}_") and "_" not in n[len(name) + 1 :])
    if what == "table":
        found = run.nodes[node].params
        return found.table if isinstance(found, SoftmaxParams) else _numbers(run, node, TableParams).table
    if what.startswith("slope"):
        return _numbers(run, node, PReluParams).slope.reshape(-1)
    if name == "fc":
        filter_ = _filter(_numbers(run, node, ProductLayer))
        return filter_.bias if what.startswith("bias") else _columns(run, node, filter_.weights)
    filter_ = _filter(_numbers(run, node, ConvolutionLayer))
    if what.startswith("bias"):
        return filter_.bias
    if what == "filter_g2normal":  # depthwise weights as TPU-MLIR spreads them over a dense filter
        channels = filter_.weights.shape[0]
        dense = np.zeros((channels, channels, *filter_.weights.shape[2:]), np.int64)
        dense[np.arange(channels), np.arange(channels)] = filter_.weights[:, 0]
        return dense.reshape(-1)
    return filter_.weights.transpose(0, 3, 1, 2).reshape(-1)


def _filter(layer: ConvolutionLayer | ProductLayer) -> FilterParams:
    assert isinstance(layer.filter, FilterParams)
    return layer.filter


def _columns(run: Golden, node: str, weights: Array) -> Array:
    """Return a product's weights [O, (h, w, c)] as TPU-MLIR stores them, [(c, h, w), O]."""
    reshape = run.nodes["fl_Reshape"]
    _, height, width, channels = run.graph.tensors[reshape.inputs[0]].shape
    return weights.reshape(-1, height, width, channels).transpose(3, 1, 2, 0).reshape(-1)


Numbers = TypeVar("Numbers")


def _numbers(run: Golden, node: str, kind: type[Numbers]) -> Numbers:
    found = run.nodes[node].params
    assert isinstance(found, kind), node
    return found
