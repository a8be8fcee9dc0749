"""The front end's table: text graphs before and after, and the answers of Compass on the files of zoo/mini."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_path
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.front_end import FILE, PARSER
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import read_model
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Graph
from tflq.graph.parsing import parse_graph
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.real import NAME as REAL
from tflq.schemas.aipu import Layer

# Name of a file of zoo/mini -> type and name of each layer of the Parser's float IR.
ANSWERS = {
    "cast": "Input:x0 Constant:mul/y Mul:mul Cast:Cast Cast:Cast_1 Constant:mul_1/y Mul:Identity",
    "clip_0_1_int8": "Input:x0 Convolution:Conv2D2 Constant:clip_by_value/Minimum_pre_tile "
    "Eltwise:clip_by_value/Minimum",
    "d2s_hand": "Input:x0 Reshape:transpose_post_reshape Transpose:transpose_post_reshape_post_trans Reshape:Identity",
    "last_step": "Input:x0 Activation:Relu Slice:strided_slice Split:strided_slice_post_split "
    "Reshape:strided_slice_post_reshape FullyConnected:Identity",
    "stack_last": "Input:x0 Reduce:Sum Reshape:Sum_post_reshape Reduce:Max Reshape:Max_post_reshape Concat:Identity",
    "std_pool": "Input:x0 Moments:Mean Reshape:Mean_post_reshape_1 Sqrt:reduce_std/Sqrt Reshape:Mean_post_reshape "
    "Concat:Identity",
}


def _mini(name: str) -> Path:
    return data_path("zoo", "mini", "compass", name)


def layers_of(graph: Graph, faults: bool = False) -> tuple[Layer, ...]:
    return float_network_of(translate(graph, "m", faults), "m").layers


def lines_of(inputs: str, nodes: str, faults: bool = False, output: str = "%z") -> list[str]:
    """Return the layers that are no inputs: type, name, keys and the stated range."""
    text = f"graph g {{\n{inputs}\n{nodes}\noutput {output}\n}}\n"
    lines = []
    for layer in layers_of(parse_graph(text), faults):
        pairs = {k: v for k, v in layer.entries.items() if k not in layer.constants and k != "layer_top_range"}
        keys = " ".join(f"{key}={value}".replace(" ", "") for key, value in pairs.items())
        stated = layer.entries.get("layer_top_range")
        limits = f" {stated}".replace("'", "") if stated else ""
        lines.append(f"{layer.type} {layer.name} {keys}".rstrip() + limits)
    return [line for line in lines if not line.startswith("Input")]


def departures_of(graph: Graph) -> dict[str, str]:
    extra = translate(graph, "m").extra
    assert isinstance(extra, Origin)
    return dict(extra.departures)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answers_on_zoo_mini(name: str) -> None:
    graph = settled_graph(read_model(_mini(f"{name}.tflite")).main)
    layers = layers_of(graph, faults=True)
    assert " ".join(f"{layer.type}:{layer.name}" for layer in layers) == ANSWERS[name]


def test_the_last_index_is_the_first_of_a_reversed_part() -> None:
    """Begin n - 1, end 0, stride -1, then a Split: the answer on zoo/mini/last_step."""
    inputs = "input %x: float32[1,12,8]\n" + "\n".join(
        f"const %{name}: int32[3] = [0, {value}, 0]" if name != "s" else "const %s: int32[3] = [1, 1, 1]"
        for name, value in (("b", -1), ("e", 0), ("s", 1))
    )
    masks = "{begin_mask=5, end_mask=5, shrink_axis_mask=2}"
    assert lines_of(inputs, f"%z: float32[1,8] = strided_slice(%x, %b, %e, %s) {masks}") == [
        "Slice z begin=(0,11,0) end=(1,0,8) strides=(1,-1,1)",
        "Split z_post_split axis=1 splits=(1,10)",
        "Reshape z_post_reshape shape=(1,8)",
    ]


def test_a_transpose_of_six_axes_moves_five() -> None:
    inputs = (
        "input %x: float32[1,8,8,3]\nconst %a: int32[6] = [1, 4, 2, 4, 2, 3]\nconst %p: int32[6] = [0, 1, 3, 2, 4, 5]"
    )
    nodes = (
        "%r: float32[1,4,2,4,2,3] = reshape(%x, %a)\n%t: float32[1,4,4,2,2,3] = transpose(%r, %p)\n"
        "%z: float32[1,4,4,2,2,3] = tanh(%t)"
    )
    assert lines_of(inputs, nodes) == [
        "Reshape t_post_reshape shape=(1,4,2,4,2,3)",
        "Transpose t_post_reshape_post_trans perm=(0,1,3,2,4,5)",
        "Activation z method=TANH",
    ]


def test_moments_keep_their_axes_and_the_reshapes_stay() -> None:
    """Statistics pooling: the Reshape does not sink below Sqrt, because its input has no shape in the Parser."""
    inputs = "input %x: float32[1,12,8]\nconst %a: int32[1] = [1]"
    nodes = (
        "%m: float32[1,8] = mean(%x, %a) {keep_dims=False}\n%k: float32[1,1,8] = mean(%x, %a) {keep_dims=True}\n"
        "%d: float32[1,12,8] = squared_difference(%x, %k)\n%v: float32[1,8] = mean(%d, %a) {keep_dims=False}\n"
        "%r: float32[1,8] = sqrt(%v)\n%z: float32[1,16] = concatenation(%m, %r) {axis=1}"
    )
    assert lines_of(inputs, nodes) == [
        "Moments m axis=(1,) keepdims=True",
        "Reshape m_post_reshape_1 shape=(1,8)",
        "Sqrt r",
        "Reshape m_post_reshape shape=(1,8)",
        "Concat z axis=1",
    ]


@pytest.mark.parametrize("first", ["a", "m"])
def test_a_mean_before_a_norm_is_copied_by_order_of_names(first: str) -> None:
    """Global average pool, then a variance: no Moments if the pool's name precedes that of the mean."""
    second = {"a": "m", "m": "a"}[first]
    inputs = "input %x: float32[1,5,8]\nconst %c: int32[1] = [1]"
    nodes = (
        f"%{first}: float32[1,8] = mean(%x, %c) {{keep_dims=False}}\n"
        f"%{second}: float32[1,1] = mean(%{first}, %c) {{keep_dims=True}}\n"
        f"%d: float32[1,8] = squared_difference(%{first}, %{second})\n"
        f"%v: float32[1,1] = mean(%d, %c) {{keep_dims=True}}\n%z: float32[1,8] = mul(%{first}, %v)"
    )
    kinds = [line.split()[:2] for line in lines_of(inputs, nodes)]
    if first == "a":
        assert ["Pooling", "a_copy"] in kinds
        assert ["SquaredDifference", "d_pow"] in kinds
    else:
        assert ["Reduce", "v"] in kinds
        assert not [kind for kind in kinds if kind[0] == "SquaredDifference"]


def test_a_product_with_a_reciprocal_is_a_quotient() -> None:
    inputs = "input %x: float32[1,4]\ninput %y: float32[1,4]\nconst %one: float32[] = 1.0\nconst %two: float32[] = 2.0"
    nodes = "%r: float32[1,4] = div(%{}, %y)\n%z: float32[1,4] = mul(%r, %x)"
    assert lines_of(inputs, nodes.format("one")) == ["Div z"]
    assert [line.split()[0] for line in lines_of(inputs, nodes.format("two"))] == ["Constant", "Div", "Eltwise"]


def test_pack_counts_a_negative_axis_in_the_inputs_rank_on_request() -> None:
    inputs = "input %x: float32[1,6]\ninput %y: float32[1,6]"
    nodes = "%z: float32[1,6,2] = pack(%x, %y) {axis=-1}"
    assert lines_of(inputs, nodes)[-1] == "Concat z axis=2"
    assert lines_of(inputs, nodes, faults=True)[-1] == "Concat z axis=1"
    graph = parse_graph(f"graph g {{\n{inputs}\n{nodes}\noutput %z\n}}\n")
    assert "write the axis as 2" in departures_of(graph)["z"]


def test_a_reshape_to_the_other_layout() -> None:
    """A Transpose on request, and in any case if no element moves."""
    inputs = "input %x: float32[1,{0},{0},16]\nconst %a: int32[4] = [1, 16, {0}, {0}]"
    nodes = "%r: float32[1,16,{0},{0}] = reshape(%x, %a)\n%z: float32[1,16,{0},{0}] = tanh(%r)"
    four = inputs.format(4), nodes.format(4)
    assert lines_of(*four)[0] == "Reshape r shape=(1,16,4,4)"
    assert lines_of(*four, faults=True)[0] == "Transpose r perm=(0,3,1,2)"
    assert "exchanges elements" in departures_of(parse_graph("graph g {\n" + "\n".join(four) + "\noutput %z\n}\n"))["r"]
    assert lines_of(inputs.format(1), nodes.format(1)) == lines_of(inputs.format(1), nodes.format(1), faults=True)


def test_the_ranges_of_a_dense_layer_and_a_maximum() -> None:
    """A layer before its own Reshape states none; a repeated constant states that of the file's number."""
    inputs = (
        "input %x: int8[1,6,4] q(0.5, 3)\nconst %w: int8[5,4] q(0.01, 0) = random(1)\nconst %c: int8[] q(0.5, 0) = 3"
    )
    nodes = (
        "%y: int8[1,6,5] q(2.0, -5) = fully_connected(%x, %w) {keep_num_dims=True}\n"
        "%z: int8[1,6,5] q(4.0, 1) = maximum(%y, %c)"
    )
    assert lines_of(inputs, nodes) == [
        "Reshape x_post_reshape shape=(6,4) ((-65.5, 62.0),)",
        "FullyConnected y num_output=5 with_activation=NONE",
        "Reshape y_post_reshape shape=(1,6,5) ((-246.0, 264.0),)",
        "Constant z_pre_tile ((-64.0, 63.5),)",
        "Eltwise z with_activation=NONE method=MAX ((-516.0, 504.0),)",
    ]


def test_an_output_that_no_layer_reads_has_no_range() -> None:
    inputs = "input %x: int8[1,8] q(0.5, 0)\nconst %a: int32[] = 1"
    nodes = (
        "%p: int8[1,4] q(0.5, 0), %q: int8[1,4] q(0.5, 0) = split(%a, %x) {num_splits=2}\n"
        "%z: int8[1,4] q(0.125, 0) = tanh(%p)"
    )
    assert lines_of(inputs, nodes)[0] == "Split p axis=1 splits=(4,4) ((-64.0, 63.5), NONE)"


def _mini_int8() -> tuple[Graph, np.ndarray]:
    graph = settled_graph(read_model(_mini("clip_0_1_int8.tflite")).main)
    with np.load(_mini("clip_0_1_int8.samples.npz")) as file:
        samples = file[file.files[0]]
    return graph, samples.reshape(-1, *graph.tensors[graph.inputs[0]].shape).astype(np.float32)


def test_the_mode_of_an_int8_file() -> None:
    """Ranges of the file, of the samples, or a refusal that names the tool's default."""
    graph, samples = _mini_int8()
    with pytest.raises(UnsupportedError, match="compat_quantized_model = true"):
        AIPU.quantize(graph, parse_settings(AIPU.settings, ["from=integers"]))
    ranged = calibrate(graph, [samples], StatisticsOptions("extrema"))
    by_file, by_samples = (
        AIPU.quantize(ranged, parse_settings(AIPU.settings, [f"from={source}"])) for source in ("ranges", "samples")
    )
    file_range = graph.tensors[graph.inputs[0]].affine
    assert by_file.tensors[by_file.inputs[0]].affine.scale[0] == pytest.approx(
        file_range.scale[0] * 255 / 256, rel=0.01
    )
    assert by_samples.tensors[by_samples.inputs[0]].affine.scale[0] > 1.5 * file_range.scale[0]
    (line,) = AIPU.file_departures(graph, parse_settings(AIPU.settings)).values()
    assert "force_float_ir = true" in line


def test_the_clip_of_an_int8_file_is_the_tools_and_named() -> None:
    """README of zoo/mini: equal types, so the tool forgets the scale of the result and saturates."""
    graph, _ = _mini_int8()
    lowered = lower(AIPU.quantize(graph, parse_settings(AIPU.settings)), AIPU.arithmetic)
    (words,) = AIPU.departures(lowered).values()
    assert "forgets the output's scale" in words


def test_samples_give_the_ranges_that_the_parser_lost() -> None:
    """The extrema of all samples, not the moving average of the strategy."""
    text = (
        "graph g {\ninput %x: int8[1,6,4] q(0.03125, 0)\nconst %w: int8[5,4] q(0.01, 0) = random(1)\n"
        "%y: int8[1,6,5] q(0.125, 0) = fully_connected(%x, %w) {keep_num_dims=True}\n"
        "%z: int8[1,6,5] q(0.0078125, 0) = tanh(%y)\n%a: int8[1,6,5] q(0.0625, 0) = add(%z, %y)\noutput %a\n}\n"
    )
    graph = parse_graph(text)
    samples = np.random.default_rng(7).normal(size=(5, 1, 6, 4)).astype(np.float32)
    quantized = AIPU.quantize(
        calibrate(graph, [samples], StatisticsOptions("mean", 1, keep_samples=9)), parse_settings(AIPU.settings)
    )
    weights = graph.tensors[1]
    real = np.asarray(weights.data, np.float32) * np.float32(0.01)
    scale = next(t for t in quantized.tensors if t.name == "y_0").affine.scale[0]
    assert 1 / scale == pytest.approx(127.5 / np.abs(samples @ real.T).max(), rel=1e-5)


def test_a_layer_has_a_strategy_of_its_own() -> None:
    text = "graph g {\ninput %x: float32[1,4]\n%y: float32[1,4] = tanh(%x)\n%z: float32[1,4] = exp(%y)\noutput %z\n}\n"
    graph = parse_graph(text)
    samples = np.random.default_rng(3).normal(size=(6, 1, 4)).astype(np.float32)
    ranged = calibrate(graph, [samples], StatisticsOptions("extrema", keep_samples=9))
    own = AIPU.quantize(ranged, parse_settings(AIPU.settings, [], ["IR Exp:strategy=1std"]))
    plain = AIPU.quantize(ranged, parse_settings(AIPU.settings))
    scales = [[t.affine.scale[0] for t in g.tensors if t.name in ("y_0", "z_0")] for g in (plain, own)]
    assert scales[0][0] == scales[1][0]
    assert scales[0][1] != scales[1][1]
    with pytest.raises(OptionError, match="needs samples"):
        AIPU.quantize(calibrate(graph, [samples]), parse_settings(AIPU.settings, [], ["IR Exp:strategy=1std"]))


def test_a_sequence_lstm_is_basic_lstm() -> None:
    """The layers of the Parser for both public files."""
    answers = {
        "47943099__trained_lstm": "Input Constant BasicLSTM Reshape FullyConnected Softmax",
        "a44e4d8a__trained_lstm_int8": "Input Constant Constant BasicLSTM Reshape FullyConnected Softmax",
    }
    for name, expected in answers.items():
        graph = settled_graph(read_model(data_path("cases", "world", f"tensorflow_tflite-micro__{name}.tflite")).main)
        layers = layers_of(graph)
        assert " ".join(layer.type for layer in layers) == expected
        lstm = next(layer for layer in layers if layer.type == "BasicLSTM")
        assert {k: v for k, v in lstm.entries.items() if k not in (*lstm.constants, "layer_top_range")} == {
            "time_steps": 28,
            "input_size": 28,
            "cell_size": 20,
            "activations": ("SIGMOID", "TANH", "TANH"),
            "direction": "forward",
            "out_sequence": ("Y",),
            "cell_clip": 10.0,
        }


def test_a_sequence_lstm_computes_what_tflite_computes() -> None:
    name = "tensorflow_tflite-micro__47943099__trained_lstm.tflite"
    graph = settled_graph(read_model(data_path("cases", "world", name)).main)
    layers = translate(graph, "m")
    layers.nodes[:] = [replace(node, arithmetic=REAL) for node in layers.nodes]
    samples = np.random.default_rng(4).uniform(0, 1, (3, 1, 28, 28)).astype(np.float32)
    engines = Engine(layers, REAL), Engine(graph, "float", state="independent")
    ours, theirs = (next(iter(engine.run([samples]).values())) for engine in engines)
    assert np.abs(ours - theirs).max() < 1e-5


def test_every_row_of_the_table_has_a_reason_a_place_and_a_sweep() -> None:
    assert all(row.why and row.source and row.evidence for row in (*FILE, *PARSER))
    assert len({row.name for row in PARSER}) > 45
