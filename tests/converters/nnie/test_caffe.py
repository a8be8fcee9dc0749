"""The Caffe package computes what the graph computes: OpenCV's importer runs it, protobuf itself parses the weights."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.converters.nnie.networks import NETWORKS, flattened_map, shortcut
from tests.support.data import data_path
from tests.support.nnie import package, run_in_opencv
from tflq.converters.nnie.caffe.layer import varint
from tflq.converters.tflite import read_model
from tflq.graph import Array, DType, Graph, GraphBuilder, float_view
from tflq.interpreter import Engine


def samples(graph: Graph, count: int = 4) -> list[Array]:
    rng = np.random.default_rng(8)
    return [rng.normal(0, 1, (count, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


def check(graph: Graph, count: int = 4) -> None:
    view = float_view(graph)
    data = samples(view, count)
    ours = Engine(view, "float").run(data)[view.outputs[0]]
    found = run_in_opencv(package(graph, data), data)
    assert np.abs(found.reshape(ours.shape) - ours).max() <= 1e-4 * (ours.max() - ours.min())


@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
def test_opencv_agrees_with_the_graph(network: Callable[[], Graph]) -> None:
    check(network())


@pytest.mark.parametrize(
    "name", ["ad01_fp32", "pretrainedResnet", "vww_96_float", "ad01_int8", "pretrainedResnet_quant"]
)
def test_opencv_agrees_on_a_reference_model(name: str) -> None:
    graph = read_model(data_path("models", f"{name}.tflite")).main
    view = float_view(graph)
    data = samples(view, 2)
    files = package(view, data)
    ours = Engine(view, "float").run(data)[view.outputs[0]]
    found = run_in_opencv(files, data).reshape(ours.shape)
    assert np.abs(found - ours).max() <= 1e-4 * (ours.max() - ours.min())


def test_reshapes_keep_the_batch() -> None:
    b, turned = GraphBuilder(), (2, 6, 4, 3)
    x, shape = b.input("x", (2, 4, 6, 3), DType.FLOAT32), b.constant("shape", np.array(turned, np.int32))
    y = b.add("reshape", [x, shape], turned, DType.FLOAT32)
    check(b.build([b.add("relu", [y], turned, DType.FLOAT32)]))


@pytest.mark.parametrize("numbers", [[1, 2], [-3, -2], [-2, 1]])
def test_axes_of_a_mean_count_from_either_end(numbers: list[int]) -> None:
    b = GraphBuilder()
    x, axes = b.input("x", (1, 4, 6, 3), DType.FLOAT32), b.constant("axes", np.array(numbers, np.int32))
    check(b.build([b.add("mean", [x, axes], (1, 3), DType.FLOAT32, keep_dims=False)]))


def net_parameter() -> Any:
    """Return a class for the parts of caffe.proto that a .caffemodel needs, made by protobuf itself."""
    if importlib.util.find_spec("google.protobuf") is None:
        pytest.skip("protobuf is not installed: nobody else parses the .caffemodel (it comes with tensorflow)")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="caffe_parts.proto", package="caffe", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(name: str, *fields: tuple[str, int, int, int, str]) -> None:
        m = file.message_type.add(name=name)
        for field_name, number, kind, label, type_name in fields:
            m.field.add(name=field_name, number=number, type=kind, label=label, type_name=type_name or None)

    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    message("BlobShape", ("dim", 1, kinds.TYPE_INT64, many, ""))
    message(
        "BlobProto", ("data", 5, kinds.TYPE_FLOAT, many, ""), ("shape", 7, kinds.TYPE_MESSAGE, one, ".caffe.BlobShape")
    )
    texts = [
        (n, i, kinds.TYPE_STRING, one if i < 3 else many, "")
        for n, i in (("name", 1), ("type", 2), ("bottom", 3), ("top", 4))
    ]
    message("LayerParameter", *texts, ("blobs", 7, kinds.TYPE_MESSAGE, many, ".caffe.BlobProto"))
    message("NetParameter", texts[0], ("layer", 100, kinds.TYPE_MESSAGE, many, ".caffe.LayerParameter"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.NetParameter"))


def test_protobuf_parses_the_weights() -> None:
    graph = flattened_map()
    files = package(graph, samples(graph))
    net = net_parameter().FromString(files["net.caffemodel"])
    assert net.name == "net"
    assert [(layer.name, layer.type) for layer in net.layer] == [
        ("conv_2d_0", "Convolution"),
        ("fully_connected_2", "InnerProduct"),
        ("fully_connected_3", "InnerProduct"),
    ]
    weights = np.array(net.layer[0].blobs[0].data, np.float32).reshape(tuple(net.layer[0].blobs[0].shape.dim))
    data = graph.tensors[graph.nodes[0].inputs[1]].data
    assert data is not None
    assert np.array_equal(weights, data.transpose(0, 3, 1, 2))
    columns = np.array(net.layer[1].blobs[0].data, np.float32).reshape(9, 6, 4, 3)
    data = graph.tensors[graph.nodes[2].inputs[1]].data
    assert data is not None
    assert np.array_equal(columns, data.reshape(9, 4, 3, 6).transpose(0, 3, 1, 2))


def test_mixed_widths_mark_the_layers() -> None:
    graph = shortcut()
    files = package(graph, samples(graph), layers=["conv_2d:bits=16"])
    assert 'name: "conv_2d_0_hp"' in files["net.prototxt"].decode()
    assert "[compile_mode] 2\n" in files["net.cfg"].decode()
    names = [layer.name for layer in net_parameter().FromString(files["net.caffemodel"]).layer]
    assert names == ["conv_2d_0_hp"]


def test_one_width_marks_no_layer() -> None:
    graph = shortcut()
    files = package(graph, samples(graph), ["bits=16"])
    assert "_hp" not in files["net.prototxt"].decode()
    assert "[compile_mode] 1\n" in files["net.cfg"].decode()


@pytest.mark.parametrize(("value", "expected"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")])
def test_varint(value: int, expected: bytes) -> None:
    assert varint(value) == expected
