"""batch=dynamic: one IR for any number of samples, equal to samples that run one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.openvino.networks import image_network
from tests.support.data import data_path
from tests.support.open_batches import REFUSED, TAKEN, open_graph, samples
from tests.support.openvino import Runtime, channels_first, converted
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import DType, GraphBuilder, Model


@pytest.mark.parametrize("ends", [[], ["input=int8", "output=int8"]], ids=["float", "codes"])
@pytest.mark.parametrize("name", ["kws_ref_model", "pretrainedResnet_quant", "ad01_int8"])
def test_a_batch_is_samples_one_by_one(name: str, ends: list[str]) -> None:
    model = read_model(data_path("models", f"{name}.tflite"))
    shape = model.main.tensors[model.main.inputs[0]].shape
    codes = np.random.default_rng(3).integers(-128, 128, (3, *shape), np.int64)
    x = codes.astype(np.int8) if ends else channels_first(codes.astype(np.float32))
    once, any_batch = (Runtime(*converted(model, [*ends, f"batch={b}"])[1:]) for b in ("static", "dynamic"))
    many = any_batch.run([x.reshape(1, 3, *x.shape[2:])])
    assert np.array_equal(once.run([x]).reshape(3, -1), many.reshape(3, -1))
    assert all(any_batch.in_integers())


def test_the_open_axis() -> None:
    _, xml, _ = converted(Model([image_network()], source="small.tflite"), ["batch=dynamic"])
    assert b'shape="?,3,6,6"' in xml


def test_an_operator_across_samples_is_refused() -> None:
    b = GraphBuilder("across")
    x = b.input("x", (1, 4), DType.FLOAT32)
    axes = b.constant("axes", np.array([0], np.int32))
    graph = b.build([b.add("sum", [x, axes], (4,), DType.FLOAT32, keep_dims=False)])
    with pytest.raises(UnsupportedError, match=r"batch=dynamic: operator 0 \(sum .*not the first axis behind it"):
        OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["batch=dynamic"]))


@pytest.mark.parametrize("name", TAKEN)
def test_one_operator_takes_any_number_of_samples(name: str) -> None:
    model, x = Model([open_graph(TAKEN[name])], source="open.tflite"), channels_first(samples())
    once, any_batch = (Runtime(*converted(model, ["precision=float", f"batch={b}"])[1:]) for b in ("static", "dynamic"))
    wanted = once.run([x])
    many = any_batch.run([x.reshape(1, -1, *x.shape[2:])])
    assert np.allclose(wanted.reshape(-1, *wanted.shape[2:]), many[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_one_operator_that_holds_the_batch(name: str) -> None:
    model = Model([open_graph(REFUSED[name])], source="open.tflite")
    converted(model, ["precision=float"])
    with pytest.raises(UnsupportedError, match=r"^batch=dynamic: "):
        converted(model, ["precision=float", "batch=dynamic"])
