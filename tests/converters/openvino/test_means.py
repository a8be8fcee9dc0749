"""MEAN over every set of axes: the layers that are written, and the numbers that OpenVINO computes."""

from __future__ import annotations

from itertools import chain, combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.openvino import Runtime, channels_first, files_of
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.graph import DType, GraphBuilder, Model

SHAPE = (2, 3, 4, 5)
AXES = [*chain.from_iterable(combinations(range(4), count) for count in range(5))]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_means(axes: tuple[int, ...], keep: bool) -> None:
    b, image = GraphBuilder("means"), np.random.default_rng(4).normal(size=(2, *SHAPE)).astype(np.float32)
    wanted = np.mean(image, axis=tuple(a + 1 for a in axes), keepdims=keep)
    x, given = b.input("x", SHAPE, DType.FLOAT32), b.constant("axes", np.array(axes, np.int32))
    graph = b.build([b.add("mean", [x, given], wanted.shape[1:], DType.FLOAT32, keep_dims=keep)])
    written = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
    xml, weights = files_of(OPENVINO.emit(written, Model([graph], source="means.tflite")))
    types = [layer.get("type") for layer in ElementTree.fromstring(xml).iter("layer")]
    assert types.count("ReduceMean") == bool(axes)
    # the order of the axes that stay decides; means over height and width need no other one
    assert types.count("Transpose") == (bool(axes) and not keep and axes != (1, 2))
    (found,) = Runtime(xml, weights).run_all([channels_first(image)])
    assert np.allclose(found, channels_first(wanted), rtol=1e-5, atol=1e-5)
