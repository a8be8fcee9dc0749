"""What a file can hold beside plain operators: all of it survives reading and writing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.draw import affine
from tests.support.single_op import assert_same_bits
from tflq.arrays import is_same
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model, write_model
from tflq.converters.tflite.extras import ModelExtra, NodeExtra, TensorExtra
from tflq.converters.tflite.writer import to_tables
from tflq.errors import GraphError, InputError, OutputError, UnsupportedError
from tflq.graph import (
    Affine,
    Blockwise,
    DType,
    FakeQuantize,
    Graph,
    GraphBuilder,
    Logarithmic,
    Model,
    Range,
    Signature,
    Tensor,
    dequantize,
)
from tflq.oracle import Oracle
from tflq.schemas import tflite as schema

F32 = np.float32


def relu(name: str = "main") -> Graph:
    b = GraphBuilder(name)
    x = b.input("x", (1, 4), DType.FLOAT32)
    return b.build([b.add("relu", [x], (1, 4), DType.FLOAT32)])


def with_constant(data: np.ndarray, quantization=None, dtype: DType | None = None, copies: int = 1) -> Graph:
    b = GraphBuilder()
    for i in range(copies):
        b.constant(f"c{i}", data, quantization, dtype)
    return b.build([])


def reread(model: Model | Graph, **options: object) -> Model:
    content = model_to_bytes(model, **options)
    read = model_from_bytes(content)
    assert is_same(read, model_from_bytes(model_to_bytes(read)))
    return read


def constant(model: Model) -> Tensor:
    return model.main.tensors[0]


def test_subgraphs_signatures_and_metadata() -> None:
    model = Model(
        [relu(), relu("second")],
        [Signature("one", 0, {"a": 0}, {"b": 1}), Signature("two", 1, {"c": 0}, {"d": 1, "again": 1})],
        {"second": b"\0\1", "first": b"", "": b"x"},
        "what it is",
    )
    read = reread(model)
    assert [g.name for g in read.graphs] == ["main", "second"]
    assert read.signatures == model.signatures
    assert list(read.metadata.items()) == list(model.metadata.items())
    assert read.description == "what it is"
    assert [n.name for g in read.graphs for n in g.nodes] == ["RELU_0_0", "RELU_1_0"]
    assert read.main is read.graphs[0]


def test_of_metadata_with_equal_names_the_last_counts_and_all_survive() -> None:
    tables = to_tables(Model([relu()], metadata={"a": b"1", "b": b"2"}))
    tables.metadata = [*tables.metadata, schema.Metadata(name="a", buffer=tables.metadata[1].buffer)]
    read = model_from_bytes(schema.encode_model(tables))
    assert read.metadata == {"a": b"2", "b": b"2"}
    names = [entry.name for entry in to_tables(read).metadata]
    assert names == ["a", "b", "a"]
    assert reread(read).extra == read.extra == ModelExtra(shadowed_metadata=(("a", b"1"),))


@pytest.mark.parametrize("dtype", [d for d in DType if d.bits])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 5)])
def test_constants_of_every_type(dtype: DType, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    if dtype.is_integer:
        data = random.integers(dtype.minimum, dtype.maximum, shape, dtype.storage, endpoint=True)
    else:
        data = random.integers(0, 2 if dtype is DType.BOOL else 99, shape).astype(dtype.storage)
    data = np.asarray(data)
    read = constant(reread(with_constant(data, dtype=dtype)))
    assert read.dtype is dtype
    assert_same_bits(read.data, data, "the constant")
    with pytest.raises(ValueError, match="read-only"):
        read.data[...] = 0


@pytest.mark.parametrize(("dtype", "bytes_"), [(DType.INT4, 8), (DType.UINT4, 8), (DType.INT2, 4), (DType.INT8, 15)])
def test_narrow_integers_are_packed(dtype: DType, bytes_: int) -> None:
    tables = to_tables(Model([with_constant(np.ones((3, 5), np.int8), dtype=dtype)]))
    assert tables.buffers[1].data.size == bytes_


def test_tflite_unpacks_int4_as_we_do(oracle: Oracle) -> None:
    b = GraphBuilder()
    quantization = Affine.per_tensor(F32(0.5), bits=4)
    w = b.constant("w", np.arange(-8, 7, dtype=np.int8).reshape(3, 5), quantization, DType.INT4)
    content = model_to_bytes(b.build([b.add("dequantize", [w], (3, 5), DType.FLOAT32, version=6)]))
    read = constant(model_from_bytes(content))
    real = dequantize(read.data, read.affine).astype(np.float32)
    assert_same_bits(real, oracle.run(content, []).outputs[0][0], "dequantized int4")


def test_strings(oracle: Oracle) -> None:
    b = GraphBuilder()
    words = b.constant("words", np.array([b"one", b"", "größer".encode()], object))
    index = b.input("i", (2,), DType.INT32)
    content = model_to_bytes(b.build([b.add("gather", [words, index], (2,), DType.STRING, version=2)]))
    read = constant(model_from_bytes(content))
    assert (read.dtype, read.shape) == (DType.STRING, (3,))
    assert read.data.tolist() == [b"one", b"", "größer".encode()]
    picked = oracle.run(content, [np.array([[2, 0]], np.int32)]).outputs[0][0]
    assert picked.tolist() == read.data[[2, 0]].tolist()
    assert is_same(read, constant(reread(model_from_bytes(content))))


def test_empty_and_scalar_constants() -> None:
    read = reread(with_constant(np.zeros((0, 3), np.int32)))
    assert constant(read).data.shape == (0, 3)
    assert constant(reread(with_constant(np.float32(2.5)))).data.shape == ()


@pytest.mark.parametrize(
    "quantization",
    [
        affine(DType.INT8, 0.5, -3),
        Affine(np.array([0.5, 0.25, 1], F32), np.array([0, 1, 2]), 0),
        Affine(np.array([0.5, 0.25, 1, 2], F32), np.zeros(4, np.int64), 1),
        Affine(np.array([0.5], F32), np.array([7]), 1),
        Blockwise(0, -1, 2),
        Blockwise(0, 0, 2, (1, 2)),
    ],
)
def test_quantizations(quantization) -> None:
    assert constant(reread(with_constant(np.ones((3, 4), np.int8), quantization))).quantization == quantization


def test_ranges_are_kept_beside_the_scale() -> None:
    graph = with_constant(np.ones((1,), np.int8), affine(DType.INT8, 0.5))
    stated = Range(np.array([-1.5], F32), np.array([2.25], F32))
    graph.tensors[0] = replace(graph.tensors[0], range=stated)
    assert constant(reread(graph)).range == stated


@pytest.mark.parametrize(
    "table",
    [
        schema.QuantizationParameters(details=schema.CustomQuantization(custom=b"0123")),
        schema.QuantizationParameters(details=schema.MultiAxisQuantization(scales=0, quantized_dimensions=[0, 1])),
        schema.QuantizationParameters(
            scale=[0.5], zero_point=[0], details=schema.BlockwiseQuantization(scales=0, block_size=2)
        ),
        schema.QuantizationParameters(scale=[0.5], zero_point=[1], details=schema.CustomQuantization(custom=b"1")),
        schema.QuantizationParameters(min=[1.0]),
        schema.QuantizationParameters(min=[1.0], max=[2.0, 3.0]),
        schema.QuantizationParameters(zero_point=[3]),
        schema.QuantizationParameters(quantized_dimension=2),
    ],
)
def test_tables_that_have_no_neutral_form_are_kept_until_the_quantization_changes(table) -> None:
    tables = to_tables(Model([with_constant(np.ones((3, 4), np.int8))]))
    tables.subgraphs[0].tensors[0].quantization = table
    read = model_from_bytes(schema.encode_model(tables))
    assert to_tables(reread(read)).subgraphs[0].tensors[0].quantization == table
    new = affine(DType.INT8, 0.125)
    read.main.tensors[0] = replace(constant(read), quantization=new)
    written = to_tables(read).subgraphs[0].tensors[0].quantization
    assert (written.scale.tolist(), written.details) == ([0.125], None)


@pytest.mark.parametrize("quantization", [Logarithmic(4.0), FakeQuantize(255, *(np.zeros(1, F32),) * 4)])
def test_quantizations_that_tflite_does_not_have_are_refused(quantization) -> None:
    with pytest.raises(GraphError, match=r"tensor 'c0' is quantized as \w+, which has no form in TFLite"):
        model_to_bytes(with_constant(np.ones(1, np.int8), quantization))


def test_shared_buffers_stay_shared() -> None:
    graph = with_constant(np.ones(1000, np.int8))
    graph.tensors += [
        graph.tensors[0],
        replace(graph.tensors[0], name="d", data=graph.tensors[0].data.reshape(10, 100), shape=(10, 100)),
    ]
    content = model_to_bytes(Model([graph, graph]))
    assert len(content) < 2000
    read = model_from_bytes(content)
    assert len(model_to_bytes(read)) == len(content)
    assert read.graphs[0].tensors[0].data is read.graphs[1].tensors[1].data


def test_constants_behind_the_flatbuffer(oracle: Oracle) -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 64), DType.FLOAT32)
    c = b.constant("c", np.arange(64, dtype=F32))
    graph = b.build([b.add("add", [x, c], (1, 64), DType.FLOAT32, fused_activation_function="none")])
    inside, outside = model_to_bytes(graph), model_to_bytes(graph, external_buffers_above=100)
    assert is_same(model_from_bytes(inside), model_from_bytes(outside))
    ones = [np.ones((1, 1, 64), F32)]
    assert_same_bits(oracle.run(outside, ones).outputs[0], oracle.run(inside, ones).outputs[0], "the sum")


def test_trailing_bytes() -> None:
    archive = b"PK\x05\x06" + bytes(18)
    archive = b"PK\x03\x04" + bytes(26) + archive
    model = Model([relu()], extra=ModelExtra(trailing_bytes=archive))
    assert model_to_bytes(model).endswith(archive)
    assert reread(model).extra.trailing_bytes == archive


def test_bytes_behind_a_constant_are_kept_and_not_read(oracle: Oracle) -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 2), DType.FLOAT32)
    c = b.constant("c", np.array([1, 2], F32))
    tables = to_tables(
        Model([b.build([b.add("add", [x, c], (1, 2), DType.FLOAT32, fused_activation_function="none")])])
    )
    tables.buffers[1].data = np.concatenate([tables.buffers[1].data, np.arange(5, dtype=np.uint8)])
    content = schema.encode_model(tables)
    read = reread(model_from_bytes(content))
    assert read.main.tensors[c].data.tolist() == [1, 2]
    assert read.main.tensors[c].extra == TensorExtra(surplus=bytes(range(5)))
    assert to_tables(read).buffers[1] == tables.buffers[1]
    assert oracle.run(content, [np.zeros((1, 1, 2), F32)]).outputs[0].tolist() == [[[1, 2]]]


def test_data_in_buffer_0_is_none_as_in_tflite() -> None:
    tables = to_tables(Model([relu()]))
    tables.buffers[0].data = np.zeros(3, np.uint8)
    assert not model_from_bytes(schema.encode_model(tables)).main.tensors[0].is_constant


def test_custom_operators_and_what_only_the_file_knows() -> None:
    graph = relu()
    extra = NodeExtra("", None, (True,), 7)
    graph.nodes[0] = replace(
        graph.nodes[0],
        operator="custom",
        custom_code="Mine",
        custom_options=b"\1\2",
        version=4,
        extra=extra,
        intermediates=(1, 1),
    )
    graph.extra = 3
    graph.tensors[1] = replace(
        graph.tensors[1],
        has_rank=True,
        shape_signature=(-1, 4),
        extra=TensorExtra(variant_tensors=[schema.VariantSubType(shape=[3], has_rank=True)]),
    )
    read = reread(graph).main
    assert read.nodes[0] == replace(graph.nodes[0], name="CUSTOM_0_0")
    assert read.tensors[1] == graph.tensors[1]
    assert read.extra == 3


def test_options_of_both_kinds() -> None:
    tables = to_tables(Model([relu()]))
    tables.subgraphs[0].operators[0].builtin_options = schema.AddOptions(pot_scale_int16=False)
    tables.subgraphs[0].operators[0].builtin_options_2 = schema.DilateOptions()
    read = reread(model_from_bytes(schema.encode_model(tables)))
    written = to_tables(read).subgraphs[0].operators[0]
    assert isinstance(written.builtin_options, schema.AddOptions)
    assert written.builtin_options_2 == schema.DilateOptions()


def test_external_files_are_refused_where_their_value_is_needed() -> None:
    tables = to_tables(Model([relu()]))
    tables.external_buffer_groups = [schema.ExternalBufferGroup(name="weights.bin")]
    tables.external_buffers = [schema.ExternalBuffer(id=1, offset=5, length=16)]
    assert reread(model_from_bytes(schema.encode_model(tables))).extra.external_buffers == tables.external_buffers
    tables.subgraphs[0].tensors[0].external_buffer = 1
    with pytest.raises(UnsupportedError, match="here: subgraph 0: tensor 0 'x': its value is external buffer 1"):
        model_from_bytes(schema.encode_model(tables), "here")


def test_an_operator_that_tflite_does_not_have_is_refused() -> None:
    graph = relu()
    graph.nodes[0] = replace(graph.nodes[0], operator="frobnicate")
    with pytest.raises(GraphError, match="node 'RELU_0_0': operator frobnicate does not exist in TFLite"):
        model_to_bytes(graph)


def test_files_that_cannot_be_read_or_written(tmp_path) -> None:
    with pytest.raises(InputError, match=r"missing\.tflite: cannot be read: No such file"):
        read_model(tmp_path / "missing.tflite")
    with pytest.raises(OutputError, match="cannot be written: No such file"):
        write_model(relu(), tmp_path / "no" / "such.tflite")
    write_model(relu(), tmp_path / "m.tflite")
    assert read_model(tmp_path / "m.tflite").source == str(tmp_path / "m.tflite")
