"""Random networks: every producer and reader find a type, the integers stand near the real numbers, files come back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_random import random_network
from tests.support.gap9_read_back import read_graph
from tflq.arrays import is_same
from tflq.converters.targets import find_target
from tflq.graph import Model
from tflq.interpreter import Engine, lower


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("target", ["gap9-ne16", "gap9-sq8"])
def test_network(seed: int, target: str) -> None:
    graph, given, real = random_network(seed)
    model = Model([graph])
    found = lower(quantized(model, target), "gap9")
    codes = find_target(target).encode(given, found.tensors[found.inputs[0]])
    output = found.tensors[found.outputs[0]]
    ours = Engine(found).run([codes])[found.outputs[0]]
    distance = np.abs((ours - output.affine.zero_point[0]) * output.affine.scale[0] - real)
    # Eight bits through a dozen layers: the mean is far below a step of a wrong type, the largest is not bounded.
    assert distance.mean() <= 0.1 * np.abs(real).max() + float(output.affine.scale[0])
    for node in found.nodes:
        for t in node.outputs:
            tensor = found.tensors[t]
            assert tensor.dtype.bits == max(8, tensor.affine.bits)
            assert tensor.dtype.is_signed == tensor.affine.signed
    again = lower(read_graph(find_target(target).emit(found, model)), "gap9")
    assert all(is_same(a.params, b.params) for a, b in zip(found.nodes, again.nodes, strict=True))
