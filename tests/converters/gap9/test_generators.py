"""AutoTiler's generators: names, parameters and controls as in the models that NNTool 4.1 writes for these layers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net
from tflq.converters.gap9.emit.artifacts import artifacts_of
from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.converters.tflite import read_model
from tflq.graph import DType, Graph, GraphBuilder, Model, Range
from tflq.interpreter import lower

_NO_POOL = "KOP_NONE 0 0 0 0 0 0 0"


def _lowered(model: Model, target: str, *sets: str) -> Graph:
    return lower(quantized(model, target, sets), "gap9")


def _shown(found: Generator | str) -> tuple[str, str, dict[str, int]]:
    assert isinstance(found, Generator), found
    return found.name, " ".join(map(str, found.parameters.values())), dict(found.controls)


@pytest.mark.parametrize(
    ("target", "node", "name", "parameters", "controls"),
    [
        (
            "gap9-ne16",
            "CONV_2D_0_0",
            "CNN_ConvolutionNE16",
            f"-1 -1 4 1 8 1 64 10 49 KOP_CONV 4 10 1 1 2 2 1 211 {_NO_POOL} KOP_RELU",
            {"PADTYPE": 3},
        ),
        (
            "gap9-ne16",
            "DEPTHWISE_CONV_2D_0_1",
            "CNN_ConvolutionNE16",
            f"-1 -1 4 1 8 64 64 5 25 KOP_CONV_DW 3 3 1 1 1 1 1 0 {_NO_POOL} KOP_RELU",
            {},
        ),
        (
            "gap9-ne16",
            "AVERAGE_POOL_2D_0_9",
            "CNN_PoolAct_SQ8",
            "64 5 25 KOP_AVGPOOL 5 25 1 1 5 25 0 KOP_NONE",
            {"HWC": 1, "OUTPUT_DATASIZE": -1, "INPUT_DATASIZE": -1},
        ),
        ("gap9-ne16", "FULLY_CONNECTED_0_11", "CNN_LinearAct_NE16", "-1 1 4 1 8 64 12 KOP_LINEAR KOP_NONE", {}),
        ("gap9-ne16", "SOFTMAX_0_12", "CNN_SoftMax_SQ8", "12 KOP_SOFTMAX", {}),
        (
            "gap9-sq8",
            "CONV_2D_0_0",
            "CNN_ConvolutionPoolAct_SQ8",
            f"4 1 1 64 10 49 KOP_CONV 4 10 1 1 2 2 1 {_NO_POOL} KOP_RELU",
            {"HWC": 1, "PADTYPE": 3},
        ),
    ],
)
def test_keyword_spotting(target: str, node: str, name: str, parameters: str, controls: dict[str, int]) -> None:
    graph = _lowered(read_model(data_path("models", "kws_ref_model.tflite")), target)
    assert _shown(generators_of(graph)[node]) == (name, parameters, controls)


def _paddings() -> Model:
    """Convolutions behind PADs of more rows above and left."""
    net = Net()
    outputs = []
    for before, after, kernel in ((1, 0, 3), (2, 1, 4)):
        pads = net.builder.constant("pads", np.array([[0, 0], *([[before, after]] * 2), [0, 0]], np.int32))
        size = 8 + before + after
        padded = net.add("pad", [net.x, pads], (1, size, size, 4), (-1.0, 1.0))
        outputs.append(net.conv(padded, (-2.0, 2.0), (kernel, kernel), padding="valid"))
    return net.model(*outputs)


def _alone() -> Model:
    net = Net(shape=(1, 6, 8, 4))
    a, b = net.conv(net.x, (-2.0, 3.0)), net.conv(net.x, (-1.0, 3.0), (3, 3))
    bent = net.unary("tanh", net.binary("add", a, b, (-3.0, 6.0)), (-1.0, 1.0))
    return net.model(net.conv(bent, (-3.0, 3.0)))


def _rows_of_softmax() -> Model:
    net = Net()
    return net.model(net.add("softmax", [net.conv(net.x, (-3.0, 3.0), outputs=6)], (1, 8, 8, 6), (0.0, 1.0), beta=1.0))


@pytest.mark.parametrize(
    ("model", "node", "name", "parameters", "controls"),
    [
        # NNTool takes padding above and left alone for none
        (
            _paddings(),
            "CONV_2D_0_1",
            "CNN_ConvolutionPoolAct_SQ8",
            f"4 1 4 4 8 8 KOP_CONV 3 3 1 1 1 1 0 {_NO_POOL} KOP_NONE",
            {"HWC": 1},
        ),
        (
            _paddings(),
            "CONV_2D_0_3",
            "CNN_ConvolutionPoolAct_SQ8",
            f"4 1 4 4 8 8 KOP_CONV 4 4 1 1 1 1 1 {_NO_POOL} KOP_NONE",
            {"HWC": 1},
        ),
        (_alone(), "TANH_0_3", "CNN_PoolAct_SQ8", f"6 4 8 {_NO_POOL} KOP_TANH", {}),
        (_rows_of_softmax(), "SOFTMAX_0_1", "CNN_SoftMax2D_SQ8", "64 6 KOP_SOFTMAX", {}),
    ],
)
def test_layers_alone(model: Model, node: str, name: str, parameters: str, controls: dict[str, int]) -> None:
    assert _shown(generators_of(_lowered(model, "gap9-sq8"))[node]) == (name, parameters, controls)


@pytest.mark.parametrize(
    ("operator", "sets", "reason"),
    [
        ("mul", (), "no code for a lone MUL; expressions=true"),
        ("sub", (), "no code for a lone SUB; expressions=true"),
        ("mul", ("expressions=true",), "NNTool writes a kernel of its own"),
    ],
)
def test_layers_without_generator(operator: str, sets: tuple[str, ...], reason: str) -> None:
    net = Net()
    a, b = net.conv(net.x, (-2.0, 3.0)), net.conv(net.x, (-1.0, 3.0), (3, 3))
    graph = _lowered(net.model(net.binary(operator, a, b, (-4.0, 5.0))), "gap9-ne16", *sets)
    found = generators_of(graph)
    assert any(reason in why for why in found.values() if isinstance(why, str))
    assert set(found) == {node.name for node in graph.nodes}


def test_files_name_generators_and_the_run_function() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    files = artifacts_of(_lowered(model, "gap9-ne16"), "gap9-ne16", model)
    nodes = {node["name"]: node for node in json.loads(files["quantization.json"])["nodes"]}
    assert nodes["CONV_2D_0_0"]["generator"]["parameters"]["PadValue"] == 211
    assert nodes["CONV_2D_0_0_activation"]["generator"] is None
    assert nodes["CONV_2D_0_0_activation"]["generator_reason"] == "part of the generator of CONV_2D_0_0"
    comment = files["constants.c"].decode().partition("*/")[0]
    assert "kws_ref_modelCNN(unsigned char *Input_1, signed short *Output_1);" in comment
    assert "Input_1: uint8[1,49,10,1] N,H,W,C, scale 0.584702909, zero point 211" in comment
    roles = [line.split()[1:3] for line in comment.partition("FULLY_CONNECTED_0_11:")[2].splitlines()[1:8]]
    assert roles == [
        ["In", "AVERAGE_POOL_2D_0_9_reshape:"],
        ["Filter", "FULLY_CONNECTED_0_11_weights_stream:"],
        ["Bias", "FULLY_CONNECTED_0_11_bias_multiplied:"],
        ["Out", "FULLY_CONNECTED_0_11:"],
        ["Scale", "FULLY_CONNECTED_0_11_multiplier:"],
        ["ScaleN", "FULLY_CONNECTED_0_11_shift:"],
        ["Infos", "NNTool's"],
    ]


def test_the_run_function_of_an_input_that_nothing_reads() -> None:
    """A SHAPE whose result is known before the run leaves no operator."""
    builder = GraphBuilder("idle")
    builder.input("x", (1, 4), DType.FLOAT32)
    graph = builder.build([builder.constant("size", np.array([4], np.int32))])
    ranged = Range(np.array([-1], np.float32), np.array([1], np.float32))
    graph.tensors[0] = replace(graph.tensors[0], range=ranged)
    model = Model([graph])
    files = artifacts_of(_lowered(model, "gap9-sq8"), "gap9-sq8", model)
    assert "CNN(float *Input_1, int *Output_1);" in files["constants.c"].decode()


def _softmax(rows: int) -> Model:
    net = Net(shape=(1, 1, rows, 4))
    return net.model(
        net.add("softmax", [net.conv(net.x, (-3.0, 3.0), outputs=6)], (1, 1, rows, 6), (0.0, 1.0), beta=1.0)
    )


@pytest.mark.parametrize(
    ("rows", "bits", "found"),
    [
        *((1, 8, "CNN_SoftMax_SQ8"), (2, 8, "CNN_SoftMax2D_SQ8"), (1, 16, "CNN_SoftMax")),
        *((n, 16, "no code for a softmax of several rows with 16-bit features") for n in (2, 3)),
    ],
)
def test_softmax_by_rows_and_width(rows: int, bits: int, found: str) -> None:
    made = generators_of(_lowered(_softmax(rows), "gap9-ne16", f"feature_bits={bits}"))["SOFTMAX_0_1"]
    assert made.name == found if isinstance(made, Generator) else found in made


def _grouped(groups: int, multiplier: int) -> Model:
    """A convolution of groups, or a depthwise one, of four channels."""
    net = Net()
    depthwise = multiplier > 0
    shape = (1, 3, 3, 4 * multiplier) if depthwise else (4, 3, 3, 4 // groups)
    channels = 4 * multiplier if depthwise else 4
    codes = net.random.integers(-127, 128, shape).astype(np.int8)
    kind = replace(net._scales(channels, 0.01), axis=3 if depthwise else 0)
    options: dict[str, Any] = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    options |= {"depth_multiplier": multiplier} if depthwise else {}
    inputs = [net.x, net.builder.constant("w", codes, kind), net._bias(channels)]
    name = "depthwise_conv_2d" if depthwise else "conv_2d"
    return net.model(net.add(name, inputs, (1, 8, 8, channels), (-2.0, 2.0), **options))


@pytest.mark.parametrize(
    ("groups", "multiplier", "on_ne16", "on_sq8"),
    [
        (1, 0, "CNN_ConvolutionNE16", "CNN_ConvolutionPoolAct_SQ8"),
        (2, 0, "no code for groups on NE16", "CNN_GroupedConvolutionPoolAct_SQ8"),
        (4, 0, "no code for groups on NE16", "CNN_GroupedConvolutionPoolAct_SQ8"),
        (4, 1, "CNN_ConvolutionNE16", "CNN_ConvolutionPoolAct_SQ8"),
        (4, 2, "no code for groups on NE16", "CNN_GroupedConvolutionPoolAct_SQ8"),
    ],
)
def test_groups(groups: int, multiplier: int, on_ne16: str, on_sq8: str) -> None:
    """NNTool gives groups to NE16, which has no mode for them (17.8)."""
    for engine, wanted in (("gap9-ne16", on_ne16), ("gap9-sq8", on_sq8)):
        (made,) = generators_of(_lowered(_grouped(groups, multiplier), engine, "numerics=nntool")).values()
        if not isinstance(made, Generator):
            assert wanted in made
            continue
        assert made.name == wanted
        several = wanted.startswith("CNN_Grouped")
        assert [made.parameters.get(key) for key in ("GroupIn", "GroupOut")] == (
            [4 // groups, max(multiplier, 1) * 4 // groups] if several else [None, None]
        )
        assert made.parameters["ConvOper"] == ("KOP_CONV_DW" if multiplier == 1 else "KOP_CONV")


@pytest.mark.parametrize("operator", ["reshape", "transpose", "concatenation", "pad", "slice", "tile", "pack"])
def test_what_moves_data_has_no_generator(operator: str) -> None:
    net = Net()
    indices = {"reshape": [1, 4, 16, 4], "transpose": [0, 2, 1, 3], "tile": [1, 1, 1, 1], "slice": [0, 1, 1, 0]}
    operands = [net.x]
    if operator == "pad":
        operands.append(net.builder.constant("k", np.array([[0, 0], [1, 1], [0, 0], [0, 0]], np.int32)))
    elif operator in ("concatenation", "pack"):
        operands.append(net.conv(net.x, (-2.0, 2.0)))
    else:
        operands.append(net.builder.constant("k", np.array(indices[operator], np.int32)))
    if operator == "slice":
        operands.append(net.builder.constant("k", np.array([1, 6, 6, 4], np.int32)))
    shapes = {"reshape": (1, 4, 16, 4), "pad": (1, 10, 8, 4), "concatenation": (1, 8, 8, 8), "slice": (1, 6, 6, 4),
              "pack": (2, 1, 8, 8, 4)}  # fmt: skip
    options: dict[str, Any] = {"concatenation": {"axis": 3}, "pack": {"axis": 0, "values_count": 2}}.get(operator, {})
    made = net.add(operator, operands, shapes.get(operator, (1, 8, 8, 4)), (-2.0, 2.0), **options)
    found = generators_of(_lowered(net.model(made), "gap9-sq8"))
    (why,) = (text for name, text in found.items() if name.startswith(operator.upper()) and "qin" not in name)
    assert "moves data" in str(why)


@pytest.mark.parametrize(
    ("operator", "kind"), [("resize_bilinear", "BILINEAR"), ("resize_nearest_neighbor", "NEAREST_NEIGHBOR")]
)
@pytest.mark.parametrize(("target", "bits", "name", "signed"), [
    ("gap9-sq8", 8, "GenerateResizeMultiChannel", "SIGNED"), ("gap9-ne16", 8, "GenerateResizeMultiChannel", "UNSIGNED"),
    ("gap9-ne16", 16, "GenerateResizeMultiChannelQ16", "UNSIGNED"),
])  # fmt: skip
def test_resizes(operator: str, kind: str, target: str, bits: int, name: str, signed: str) -> None:
    net = Net(shape=(1, 3, 5, 4))
    x = net.conv(net.x, (-2.0, 3.0), outputs=6)
    size = net.builder.constant("size", np.array([7, 9], np.int32))
    y = net.add(operator, [x, size], (1, 7, 9, 6), (-2.0, 3.0), align_corners=False, half_pixel_centers=False)
    graph = _lowered(net.model(net.conv(y, (-2.0, 2.0))), target, f"feature_bits={bits}")
    made = generators_of(graph)[f"{operator.upper()}_0_1"]
    assert _shown(made) == (name, f"5 3 9 7 6 {signed}_INOUT KOP_{kind}_RESIZE", {})


@pytest.mark.parametrize("shape", [(1, 6), (1, 5, 6), (1, 4, 5, 6), (1, 1, 1, 6)])
@pytest.mark.parametrize("operator", ["add", "tanh"])
def test_sizes_of_what_is_element_wise(shape: tuple[int, ...], operator: str) -> None:
    """Feat, Width and Height: three numbers for any rank, whose product is the number of elements."""
    net = Net(shape=shape)
    y = net.unary("tanh", net.x, (-1.0, 1.0))
    if operator == "add":
        y = net.binary("add", net.x, net.input((-2.0, 1.0), shape), (-3.0, 2.0))
    found = generators_of(_lowered(net.model(y), "gap9-sq8"))
    (made,) = (g for g in found.values() if isinstance(g, Generator) and "Feat" in g.parameters)
    assert np.prod([int(made.parameters[key]) for key in ("Feat", "Width", "Height")]) == np.prod(shape)
