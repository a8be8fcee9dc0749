"""Keys of the target: what each may be, and where it stands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.nnie.networks import shortcut, start
from tests.support.nnie import clipping_grid, package, quantized
from tflq.errors import OptionError
from tflq.graph import Array, DType, Graph, Logarithmic
from tflq.interpreter.kernels.nnie.logarithm import scheme_of

KEYS = {"internal_stride": (16, 32), "compress_mode": (0, 1), "is_simulation": (0, 1), "batch_num": (1, 0, 256)}
"""Of the mapper's cfg, the default first."""
BEYOND = {"internal_stride": (0, 17, 64), "compress_mode": (-1, 2), "is_simulation": (-1, 2), "batch_num": (-1, 257)}


def _samples(graph: Graph) -> list[Array]:
    draw = np.random.default_rng(5)
    return [draw.normal(0, 1, (3, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


def _cfg(sets: list[str]) -> str:
    graph = shortcut()
    return package(graph, _samples(graph), sets)["net.cfg"].decode()


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_the_mapper_stand_in_its_cfg(key: str) -> None:
    assert f"[{key}] {KEYS[key][0]}\n" in _cfg([])
    for value in KEYS[key]:
        assert f"[{key}] {value}\n" in _cfg([f"{key}={value}"])


@pytest.mark.parametrize("key", BEYOND)
def test_other_values_are_refused(key: str) -> None:
    for value in BEYOND[key]:
        with pytest.raises(OptionError):
            _cfg([f"{key}={value}"])


@pytest.mark.parametrize("bits", [8, 16])
def test_weights_of_one_layer_are_quantized_those_of_two_stay(bits: int) -> None:
    """The clipping value is one of the library's grid; weights that two layers read may have two."""
    b, x = start(4, 4, 3)
    own, shared = (b.constant(n, np.linspace(-0.7, 0.9, 9).reshape(3, 1, 1, 3).astype(np.float32)) for n in "ab")
    keys = {"padding": "same", "stride_h": 1, "stride_w": 1}
    for weights in (own, shared, shared):
        x = b.add("conv_2d", [x, weights], (1, 4, 4, 3), DType.FLOAT32, fused_activation_function="relu", **keys)
    graph = b.build([x])
    made = quantized(graph, _samples(graph), [f"bits={bits}"])
    types = [made.tensors[node.inputs[1]].quantization for node in made.nodes]
    assert isinstance(types[0], Logarithmic)
    assert types[0].bits == bits
    assert np.float32(types[0].clipping) in clipping_grid(scheme_of(bits))
    assert types[1:] == [None, None]
    assert [node.attributes.real("weight_clipping") for node in made.nodes] == [types[0].clipping] * 3
