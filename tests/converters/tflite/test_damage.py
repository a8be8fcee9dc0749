"""Files that pass as flatbuffers but contradict themselves: one line that names file, subgraph and place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite.writer import to_tables
from tflq.errors import FormatError, GraphError, OracleError, TflqError
from tflq.graph import Affine, Blockwise, DType, GraphBuilder, Model, Signature
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.schemas import tflite as schema

Damage = Callable[[schema.Model], None]
SHAPE = (1, 4, 4, 2)
F32 = np.float32


def sound() -> schema.Model:
    """x -> CONV_2D with w, b -> y -> RELU -> z, all int8, and a tensor in blocks."""
    b = GraphBuilder("main")
    x = b.input("x", SHAPE, DType.INT8, Affine.per_tensor(F32(0.5), 3))
    scales, zeros = np.array([0.1, 0.2, 0.3], F32), np.zeros(3, np.int64)
    w = b.constant("w", np.arange(24, dtype=np.int8).reshape(3, 2, 2, 2), Affine(scales, zeros, 0))
    bias = b.constant("b", np.arange(3, dtype=np.int32), Affine(scales / 2, zeros, 0, 32))
    window = {"stride_w": 1, "stride_h": 1, "padding": "same", "fused_activation_function": "none"}
    result = Affine.per_tensor(F32(2), 1)
    y = b.add("conv_2d", [x, w, bias], (1, 4, 4, 3), DType.INT8, result, **window)
    z = b.add("relu", [y], (1, 4, 4, 3), DType.INT8, result)
    b.constant("blocks", np.ones((2, 4), np.int8), Blockwise(w, -1, 2))
    signature = Signature("s", 0, {"x": x}, {"z": z})
    return to_tables(Model([b.build([z])], signatures=[signature], metadata={"k": b"abc"}))


def tensor(number: int, **changes: object) -> Damage:
    return lambda model: change(model.subgraphs[0].tensors[number], changes)


def operator(number: int, **changes: object) -> Damage:
    return lambda model: change(model.subgraphs[0].operators[number], changes)


def quantization(number: int, **changes: object) -> Damage:
    return lambda model: change(model.subgraphs[0].tensors[number].quantization, changes)


def blocks(**changes: object) -> Damage:
    return lambda model: change(model.subgraphs[0].tensors[5].quantization.details, changes)


def subgraph(**changes: object) -> Damage:
    return lambda model: change(model.subgraphs[0], changes)


def signature(**changes: object) -> Damage:
    return lambda model: change(model.signature_defs[0], changes)


def whole(**changes: object) -> Damage:
    return lambda model: change(model, changes)


def data(number: int, size: int) -> Damage:
    return lambda model: change(
        model.buffers[model.subgraphs[0].tensors[number].buffer], {"data": np.zeros(size, np.uint8)}
    )


def change(table: schema.Table, changes: dict[str, object]) -> None:
    for name, value in changes.items():
        setattr(table, name, value)


def nameless_custom(model: schema.Model) -> None:
    schema.set_builtin_code(model.operator_codes[1], schema.BuiltinOperator.CUSTOM)


W, X, Y = r"subgraph 0: tensor 1 'w': ", r"subgraph 0: tensor 0 'x': ", r"subgraph 0: tensor 3 'conv_2d_0': "
CONV, RELU = r"subgraph 0: operator 0 \(conv_2d 'CONV_2D_0_0'\) ", r"subgraph 0: operator 1 \(relu 'RELU_0_1'\) "

# What TFLite refuses, too.
REFUSED: dict[str, tuple[Damage, type[TflqError], str]] = {
    "buffer": (tensor(1, buffer=99), FormatError, W + r"found buffer 99; buffers are 0\.\.4"),
    "no buffers": (whole(buffers=None, metadata=None), FormatError, "found buffer 1; the file has no buffers"),
    "opcode": (
        operator(0, opcode_index=9),
        FormatError,
        r"operator 0: found opcode index 9; operator codes are 0\.\.1",
    ),
    "no opcodes": (
        whole(operator_codes=None),
        FormatError,
        "operator 0: found opcode index 0; the file has no operator",
    ),
    "custom": (nameless_custom, FormatError, "subgraph 0: operator 1: is a custom operator without a name"),
    "reads 99": (operator(1, inputs=[99]), GraphError, RELU + r"reads tensor 99; tensors are 0\.\.5"),
    "reads -2": (operator(1, inputs=[-2]), FormatError, r"operator 1 \(RELU\): inputs: found tensor -2"),
    "writes 99": (operator(1, outputs=[99]), GraphError, RELU + r"writes tensor 99; tensors are 0\.\.5"),
    "writes -2": (operator(1, outputs=[-2]), FormatError, r"operator 1 \(RELU\): outputs: found tensor -2"),
    "writes none": (operator(1, outputs=[-1]), GraphError, RELU + "writes tensor -1"),
    "writes a constant": (
        operator(1, outputs=[1]),
        GraphError,
        RELU + "writes tensor 1 'w', which has a value already",
    ),
    "output": (subgraph(outputs=[99]), GraphError, "subgraph 0: output 99 is out of range"),
    "no tensors": (subgraph(tensors=None), GraphError, "subgraph 0: input 0 is out of range; the graph has no tensors"),
    "no subgraph": (whole(subgraphs=None, signature_defs=None), FormatError, "the file has no subgraph"),
    "short": (data(1, 23), FormatError, W + r"shape \(3, 2, 2, 2\) of int8 needs 24 bytes, the buffer holds 23"),
    "size -2": (
        tensor(1, shape=[3, -2, 2, 2]),
        FormatError,
        W + r"found shape \(3, -2, 2, 2\); sizes must be 0 or more",
    ),
    "size -1": (tensor(3, shape=[-1, 4, 4, 3]), FormatError, Y + r"found shape \(-1, 4, 4, 3\)"),
    "overflow": (tensor(0, shape=[1 << 30] * 4), GraphError, X + r"found shape .*; a tensor has less than 2\^63 bytes"),
    "variable": (tensor(1, is_variable=True), FormatError, W + "is a variable with data in buffer 1"),
    "zero points": (quantization(1, zero_point=[0, 0]), FormatError, W + "3 scales but 2 zero points"),
    "one zero point": (quantization(1, zero_point=[0]), FormatError, W + "3 scales but 1 zero points"),
    "no zero point": (quantization(0, zero_point=None), FormatError, X + "1 scales but 0 zero points"),
    "scales": (quantization(1, quantized_dimension=3), FormatError, W + "3 scales along axis 3, which has 2 channels"),
    "axis 4": (quantization(1, quantized_dimension=4), FormatError, W + r"quantized along axis 4, .* has axes 0\.\.3"),
    "axis -1": (quantization(0, quantized_dimension=-1), FormatError, X + "quantized along axis -1"),
}
# What TFLite does not look at, or crashes on now and then.
ACCEPTED: dict[str, tuple[Damage, type[TflqError], str]] = {
    "output none": (subgraph(outputs=[-1]), GraphError, "subgraph 0: output -1 is out of range"),
    "input": (subgraph(inputs=[-2]), FormatError, "subgraph 0: inputs: found tensor -2"),
    "order": (
        lambda m: m.subgraphs[0].operators.reverse(),
        GraphError,
        "operator 0 .* reads tensor 3 'conv_2d_0', whic",
    ),
    "cycle": (operator(0, inputs=[4, 1, 2]), GraphError, CONV + "reads tensor 4 'relu_1', which is neither a constant"),
    "in place": (operator(1, outputs=[3]), GraphError, RELU + "writes tensor 3 'conv_2d_0', which has a value already"),
    "no operators": (subgraph(operators=None), GraphError, "output tensor 4 'relu_1' is written by no operator"),
    "constant input": (subgraph(inputs=[0, 1]), GraphError, "subgraph 0: input 1 'w' is a constant"),
    "written input": (subgraph(inputs=[0, 3]), GraphError, CONV + "writes tensor 3 'conv_2d_0', which has a value"),
    "signature graph": (
        signature(subgraph_index=5),
        FormatError,
        r"signature 's': found subgraph 5; subgraphs are 0\.\.0",
    ),
    "signature tensor": (
        signature(inputs=[schema.TensorMap(name="x", tensor_index=9)]),
        FormatError,
        r"signature 's': 'x' is tensor 9; tensors are 0\.\.5",
    ),
    "signature name": (
        signature(outputs=[schema.TensorMap(name="z", tensor_index=i) for i in (3, 4)]),
        FormatError,
        "signature 's': two inputs or two outputs have the name 'z'",
    ),
    "signature key": (
        lambda m: change(m, {"signature_defs": m.signature_defs * 2}),
        FormatError,
        "two signatures have the key 's'",
    ),
    "metadata": (lambda m: change(m.metadata[0], {"buffer": 99}), FormatError, "metadata 'k': found buffer 99"),
    "metadata buffer": (whole(metadata_buffer=[-1]), FormatError, "metadata buffer -1: found buffer -1"),
    "block scales": (blocks(scales=99), GraphError, r"tensor 5 'blocks': its scales are tensor 99; allowed are 0\.\.5"),
    "block zero points": (blocks(zero_points=-2), GraphError, "tensor 5 'blocks': its zero points are tensor -2"),
    "block size": (blocks(block_size=0), GraphError, "tensor 5 'blocks': found blocks of 0 elements"),
}
ALL = {**REFUSED, **ACCEPTED}


@pytest.mark.parametrize("name", ALL)
def test_reading_refuses_with_the_place(name: str) -> None:
    damage, error, message = ALL[name]
    tables = sound()
    damage(tables)
    content = schema.encode_model(tables)
    with pytest.raises(error, match=f"^file: .*{message}") as caught:
        model_from_bytes(content, "file")
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_tflite_refuses_it_too(name: str, oracle: Oracle) -> None:
    tables = sound()
    REFUSED[name][0](tables)
    with pytest.raises(OracleError):
        oracle.run(schema.encode_model(tables), [np.ones((1, *SHAPE), np.int8)])


def test_the_sound_file_runs(oracle: Oracle) -> None:
    content = schema.encode_model(sound())
    ones = [np.ones((1, *SHAPE), np.int8)]
    (ours,) = Engine(model_from_bytes(content).main).run(ones).values()
    assert np.array_equal(ours, oracle.run(content, ones).outputs[0])


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("number", "name", "place"),
    [
        (0, "x", r"operator 0 \(conv_2d 'CONV_2D_0_0'\)"),
        (1, "w", r"operator 0 \(conv_2d 'CONV_2D_0_0'\)"),
        (2, "b", r"operator 0 \(conv_2d 'CONV_2D_0_0'\)"),
        (3, "conv_2d_0", r"operator 0 \(conv_2d 'CONV_2D_0_0'\)"),
        (4, "relu_1", r"operator 1 \(relu 'RELU_0_1'\)"),
    ],
)
def test_scales_that_stand_for_nothing_are_refused_where_they_are_used(
    number: int, name: str, place: str, scale: float
) -> None:
    """TFLite runs these files; what it computes is no quantized network."""
    tables = sound()
    parameters = tables.subgraphs[0].tensors[number].quantization
    parameters.scale = np.array([1, scale, 1] if parameters.scale.size > 1 else [scale], F32)
    graph = model_from_bytes(schema.encode_model(tables), "file").main
    channel = " in channel 1" if parameters.scale.size > 1 else ""
    with pytest.raises(GraphError, match=f"^{place}: tensor '{name}' has scale {scale}{channel}; scales are positive"):
        Engine(graph)


@pytest.mark.parametrize("zero_point", [-129, 128, 1 << 40])
@pytest.mark.parametrize(("number", "name"), [(0, "x"), (3, "conv_2d_0")])
def test_zero_points_outside_the_type_are_refused(number: int, name: str, zero_point: int) -> None:
    tables = sound()
    tables.subgraphs[0].tensors[number].quantization.zero_point = [zero_point]
    graph = model_from_bytes(schema.encode_model(tables), "file").main
    with pytest.raises(
        GraphError, match=rf"tensor '{name}' has zero point {zero_point}; those of int8 are -128\.\.127"
    ):
        Engine(graph)


def test_operators_that_only_move_codes_do_not_ask_for_a_scale(oracle: Oracle) -> None:
    b = GraphBuilder()
    nothing = Affine.per_tensor(F32(0), 300)
    x = b.input("x", (2, 3), DType.INT8, nothing)
    content = schema.encode_model(
        to_tables(Model([b.build([b.add("reshape", [x], (6,), DType.INT8, nothing, new_shape=(6,))])]))
    )
    codes = [np.arange(6, dtype=np.int8).reshape(1, 2, 3)]
    (ours,) = Engine(model_from_bytes(content).main).run(codes).values()
    assert np.array_equal(ours, oracle.run(content, codes).outputs[0])
