"""Attributes <-> the options tables of the schema."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas.strategies import tables
from tests.support.draw import affine
from tests.support.single_op import check_against_oracle
from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite.options import attributes_of, options_class, options_of
from tflq.converters.tflite.writer import to_tables
from tflq.errors import GraphError
from tflq.graph import Attributes, DType, Graph, GraphBuilder, Model, Node
from tflq.oracle import Oracle
from tflq.schemas import tflite as schema

OPTIONS = [*schema.BuiltinOptions.MEMBERS.values(), *schema.BuiltinOptions2.MEMBERS.values()]


def node(operator: str, **attributes: object) -> Node:
    return Node(operator, (), (), Attributes(attributes), "NODE_0_0")


@pytest.mark.parametrize("table", OPTIONS, ids=[table.__name__ for table in OPTIONS])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_table_survives(table: type[schema.Table], data: st.DataObject) -> None:
    original = data.draw(tables(table, 1))
    attributes = attributes_of(original, "custom")
    written = options_of(Node("custom", (), (), attributes, "N"), table.__name__)
    assert type(written) is table
    assert attributes_of(written, "custom") == attributes
    for field in table.FIELDS:
        one, other = getattr(original, field.name), getattr(written, field.name)
        assert np.array_equal(one, other) or one == other or (one != one and other != other)


def test_enumerations_are_names_and_bytes_are_bytes() -> None:
    attributes = attributes_of(
        schema.Conv2DOptions(padding=schema.Padding.VALID, quantized_bias_type=schema.TensorType.INT32), "conv_2d"
    )
    assert attributes.text("padding") == "valid"
    assert attributes.text("quantized_bias_type") == "int32"
    assert attributes.integer("dilation_w_factor") == 1
    composite = attributes_of(schema.StableHLOCompositeOptions(composite_attributes=b"\1\2"), "stablehlo_composite")
    assert composite["composite_attributes"] == b"\1\2"


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("conv_2d", "Conv2DOptions"),
        ("average_pool_2d", "Pool2DOptions"),
        ("reduce_any", "ReducerOptions"),
        ("maximum", "MaximumMinimumOptions"),
        ("batch_matmul", "BatchMatMulOptions"),
        ("lstm", "LSTMOptions"),
        ("random_uniform", "RandomOptions"),
        ("stablehlo_composite", "StableHLOCompositeOptions"),
        ("l2_normalization", "L2NormOptions"),
        ("unidirectional_sequence_rnn", "SequenceRNNOptions"),
    ],
)
def test_operators_have_their_table(operator: str, name: str) -> None:
    assert options_class(operator).__name__ == name


def test_an_operator_without_a_table_has_no_attributes() -> None:
    assert options_class("relu") is None
    assert options_of(node("relu"), None) is None
    with pytest.raises(GraphError, match="node 'NODE_0_0': operator relu has no options in TFLite, found alpha"):
        options_of(node("relu", alpha=1.0), None)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"axes": 1}, "operator conv_2d has no attribute axes; it has padding, stride_w"),
        ({"padding": "reflect"}, "attribute padding: found 'reflect', allowed are same, valid"),
        ({"stride_w": 1.5}, "attribute stride_w: .*1.5"),
        ({"stride_w": 1 << 40}, "attribute stride_w: .*1099511627776"),
        ({"stride_w": "two"}, "attribute stride_w: .*two"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(attributes: dict, message: str) -> None:
    with pytest.raises(GraphError, match=f"node 'NODE_0_0': {message}"):
        options_of(node("conv_2d", **attributes), None)


def addition(dtype: DType) -> Graph:
    b = GraphBuilder()
    x, y = (b.input(name, (1, 9), dtype, affine(dtype, scale)) for name, scale in (("x", 0.5), ("y", 0.125)))
    return b.build([b.add("add", [x, y], (1, 9), dtype, affine(dtype, 0.75), fused_activation_function="none")])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32])
def test_absent_options_are_zeros_as_in_tflite(oracle: Oracle, dtype: DType) -> None:
    graph = addition(dtype)
    tables = to_tables(Model([graph]))
    tables.subgraphs[0].operators[0].builtin_options = None
    read = model_from_bytes(schema.encode_model(tables)).main
    assert read.nodes[0].attributes.boolean("pot_scale_int16") is False
    shape = (20, 1, 9)
    rng = np.random.default_rng(3)
    kind = dtype.storage
    draw = (
        (lambda: rng.normal(size=shape).astype(kind))
        if kind.kind == "f"
        else lambda: rng.integers(-99, 99, shape, kind)
    )
    check_against_oracle(oracle, read, [draw(), draw()])
    assert to_tables(Model([read])).subgraphs[0].operators[0].builtin_options is None


def test_absent_options_are_written_once_an_attribute_is_set() -> None:
    tables = to_tables(Model([addition(DType.INT8)]))
    tables.subgraphs[0].operators[0].builtin_options = None
    read = model_from_bytes(schema.encode_model(tables)).main
    only = read.nodes[0]
    changed = Node(**{**vars(only), "attributes": only.attributes.updated(fused_activation_function="relu")})
    read.nodes[0] = changed
    options = to_tables(Model([read])).subgraphs[0].operators[0].builtin_options
    assert options.fused_activation_function is schema.ActivationFunctionType.RELU
