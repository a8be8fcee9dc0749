"""opt.cfg and opt_template.json of Compass: read as settings, written, and refused by name."""

from __future__ import annotations

import configparser
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.api.options import CalibrationOptions, TargetOptions
from tflq.api.target import fill_calibration, merge_settings
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.tool_config import build_config_text, config_text, read_config
from tflq.converters.settings import parse_settings
from tflq.converters.settings_file import read_settings
from tflq.converters.targets import find_target
from tflq.errors import FormatError, OptionError, TflqWarning, UnsupportedError, UsageError
from tflq.graph import DType, Graph, Model, Range
from tflq.graph.builder import GraphBuilder

WHOLE = """# a comment
[Common]
graph = m.txt
dataset = numpydataset
calibration_data = c.npy
calibration_strategy_for_activation = 3std
running_statistic_momentum = 0.8
quantize_method_for_activation = per_tensor_asymmetric
quantize_method_for_weight = per_channel_symmetric_full_range
activation_bits = 8 & <[(1,2),(4,4)]:16> <[Softmax, tanh]:16> <{.*/a:0}:16>
min_compatible_zhouyi_target = X3_1204
"""


def _network() -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", (1, 5, 5, 2), DType.FLOAT32)
    weights = builder.constant("w", np.random.default_rng(1).normal(size=(3, 3, 3, 2)).astype(np.float32))
    keys: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    y = builder.add("conv_2d", (x, weights), (1, 3, 3, 3), DType.FLOAT32, **keys)
    graph = builder.build((builder.add("tanh", (y,), (1, 3, 3, 3), DType.FLOAT32),))
    one = Range(np.array([-1], np.float32), np.array([1], np.float32))
    graph.tensors[:] = [t if t.data is not None else replace(t, range=one) for t in graph.tensors]
    return graph


def _widths(file: str) -> list[int]:
    """Return the bits of the input and of each layer's output."""
    found = read_config(file, "opt.cfg")
    settings = parse_settings(AIPU.settings, found.assignments, found.layers)
    graph = AIPU.quantize(_network(), settings)
    outputs = [graph.inputs[0], *(node.outputs[0] for node in graph.nodes)]
    return [graph.tensors[t].affine.bits for t in outputs]


def test_a_file_is_read() -> None:
    found = read_config(WHOLE, "folder/opt.cfg")
    assert found.assignments == (
        *("activations=asymmetric", "activation_range=full", "weights=per_channel", "weight_range=full"),
        *("activation_bits=8", "min_compatible_zhouyi_target=X3"),
    )
    assert found.layers == (
        r"IR {.*/a\x3a0}:activation_bits=16",
        *("IR tanh:activation_bits=16", "IR Softmax:activation_bits=16"),
        *("IR 4-4:activation_bits=16", "IR 1-2:activation_bits=16"),
    )
    assert found.calibration == {
        "strategy": "3std",
        "batch_size": 1,
        "momentum": 0.8,
        "samples": str(Path("folder/c.npy")),
    }


@pytest.mark.parametrize(
    ("rule", "widths"),
    [
        ("", [8, 8, 8]),
        (" & <[(0,0)]:16>", [16, 8, 8]),
        (" & <[(1,2)]:16>", [8, 16, 16]),
        (" & <[convolution]:16>", [8, 16, 8]),
        (" & <[TANH]:16>", [8, 8, 16]),
        (" & <{conv}:16> <[(1,1)]:8>", [8, 8, 8]),
        (" & <[(2,2)]:8> <[tanh]:16>", [8, 8, 8]),
    ],
)
def test_rules_hold_for_layers_of_the_ir(rule: str, widths: list[int]) -> None:
    """Ranges of layers win over types, types over names."""
    assert _widths(f"[Common]\nactivation_bits = 8{rule}\n") == widths


def test_a_rule_for_no_layer_is_refused() -> None:
    with pytest.raises(OptionError, match="'IR Softmax' matches none of the 3 layers"):
        _widths("[Common]\nactivation_bits = 8 & <[Softmax]:16>\n")


def test_a_template_is_read(tmp_path: Path) -> None:
    layer = {"q_mode_activation": "per_tensor_asymmetric", "q_bits_activation": 16, "extra_params": [2, 20]}
    first, second = AIPU.quantize(_network(), parse_settings(AIPU.settings)).nodes
    path = tmp_path / "opt_template.json"
    path.write_text(json.dumps({second.name: layer}, indent=4), encoding="utf-8")
    found = read_settings(path)
    assert [rule.partition(":")[2] for rule in found.layers] == [
        "activations=asymmetric,activation_range=full,activation_bits=16,softmax=lut"
    ]
    graph = AIPU.quantize(_network(), parse_settings(AIPU.settings, found.assignments, found.layers))
    bits = {node.name: graph.tensors[node.outputs[0]].affine.bits for node in graph.nodes}
    assert bits == {first.name: 8, second.name: 16}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("global_calibration = smooth_quant_zy[0.5]", "smooth_quant_zy: the tool's file has a scale for each channel"),
        ("global_calibration = easy_quant", "easy_quant: the tool itself stops in it"),
        ("global_calibration = awq_zy[20] & gptq_zy", "awq_zy: .*; gptq_zy: for convolutions its order"),
        ("global_calibration = adaround[1,1,1] & adaquant_zy[1]", "one method at a time; allowed is none, adaround"),
        ("global_calibration = fancy[adaround]", "fancy: unknown; allowed is none, adaround, adaquant_zy"),
        ("quantize_method_for_activation = per_channel_symmetric_full_range", "allowed is per_tensor_symmetric_full"),
        ("force_dtype_int = true", "force_dtype_int = true: is not followed here; allowed is false"),
        ("activation_bits = wide", "activation_bits = wide: allowed is a whole number"),
        (
            "calibration_strategy_for_activation = mean & <[Softmax]:best>",
            "one strategy of Compass, and others for single",
        ),
        ("histc_bins = many", "histc_bins = many: allowed is a number"),
        ("bits = 8", "bits = 8: is not followed here: leave it away"),
    ],
)
def test_what_is_not_followed_is_refused_by_name(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=rf"opt\.cfg: .*{message}"):
        read_config(f"[Common]\n{line}\n", "opt.cfg")


def test_no_file_of_the_tool() -> None:
    with pytest.raises(FormatError, match="needs the section"):
        read_config("[Other]\na = 1\n", "opt.cfg")
    with pytest.raises(FormatError, match="is no template"):
        read_config("{", "t.json")


@pytest.mark.parametrize(
    ("layer", "rule"),
    [
        ({}, ""),
        (
            {"q_mode_activation": "per_tensor_symmetric_restricted_range"},
            "activations=symmetric,activation_range=restricted",
        ),
        ({"q_mode_weight": "per_channel_symmetric_full_range"}, "weights=per_channel,weight_range=full"),
        ({"q_mode_weight": "per_tensor_symmetric_restricted_range"}, "weights=per_tensor,weight_range=restricted"),
        ({"q_bits_weight": 4, "q_bits_bias": 24}, "weight_bits=4,bias_bits=24"),
        ({"lut_items_in_bits": 9, "multiplier_bits": 12}, "lut_items_in_bits=9,multiplier_bits=12"),
        ({"remain_shift": 3, "bias_effective_bits": 16}, "remain_shift=3,bias_effective_bits=16"),
        ({"extra_params": [0.0]}, ""),
        ({"extra_params": [1, 8]}, "softmax=fast_exp,softmax_adjust_q=8"),
        ({"q_strategy_activation": "mean", "running_statistic_momentum": 0.9, "histc_bins": 2048}, ""),
        ({"force_dtype_int": False, "approx_params": [0.0], "q_strategy_weight": "extrema"}, ""),
    ],
)
def test_settings_of_a_layer_in_a_template(layer: dict[str, Any], rule: str) -> None:
    """Named with signs of regular expressions; what calibrates is not a layer's."""
    found = read_config(json.dumps({"conv:0.b*": layer}), "t.json")
    assert found.layers == (rf"IR {{conv\x3a0\.b\*$}}:{rule}",)
    assert (found.assignments, found.calibration) == ((), {})


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"force_dtype_int": True}, "layer 'a': force_dtype_int = True: is not followed here; allowed is false"),
        ({"extra_params": [3, 1]}, r"layer 'a': extra_params = \[3, 1\]: is not followed here"),
        ({"new_key": 1}, "layer 'a': new_key = 1: is not followed here: leave it away"),
        ({"q_mode_activation": "per_channel_symmetric_full_range"}, "allowed is per_tensor_symmetric_full"),
    ],
)
def test_what_a_template_may_not_say(layer: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=rf"t\.json: .*{message}"):
        read_config(json.dumps({"a": layer}), "t.json")


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', '{"a": {}, "b": []}', '"a"'])
def test_what_is_no_template(text: str) -> None:
    with pytest.raises(FormatError, match=r"t\.json: is no template"):
        read_config(text if text.startswith("{") else "{" + text, "t.json")


@pytest.mark.parametrize(
    "chosen",
    [
        [],
        ["activations=asymmetric", "weights=per_channel", "weight_range=full", "unify_concat=true"],
        ["activation_bits=16", "weight_bits=12", "bias_effective_bits=0", "multiplier_bits=10", "remain_shift=20"],
        ["activation_range=restricted", "min_compatible_zhouyi_target=Z3", "bias_bits=16", "lut_items_in_bits=9"],
    ],
)
def test_what_is_written_is_read(chosen: list[str]) -> None:
    """Widths that follow from others are written out, so that what is requested comes back."""
    settings = parse_settings(AIPU.settings, chosen)
    found = read_config(config_text(settings, "m"), "opt.cfg")
    again = parse_settings(AIPU.settings, found.assignments)
    for key, value in settings.values.items():
        if key not in ("bias_bits", "bias_effective_bits") or any(key in text for text in chosen):
            assert again.values[key] == value or (key, value) == ("bias_effective_bits", 0)
    assert found.calibration == {}


@pytest.mark.parametrize(("requested", "written"), [("0", "48"), ("24", "24")])
def test_all_bits_of_a_bias_count_or_those_that_are_requested(requested: str, written: str) -> None:
    """Sums of 16-bit activations have 48 bits."""
    settings = parse_settings(AIPU.settings, ["activation_bits=16", f"bias_effective_bits={requested}"])
    lines = config_text(settings, "m").splitlines()
    assert {"bias_bits = 48", f"bias_effective_bits = {written}"} <= set(lines)


def test_what_the_tool_does_not_have_is_not_written() -> None:
    for chosen, rules in ((["variant=whitepaper"], ()), ([], ["0:weight_bits=4"])):
        with pytest.raises(FormatError, match=r"opt\.cfg has no layers of a \.tflite"):
            config_text(parse_settings(AIPU.settings, chosen, rules), "m")


@pytest.mark.parametrize("method", ["adaround", "adaquant_zy"])
def test_methods_across_layers_fit_weights(tmp_path: Path, method: str) -> None:
    """convert recovers by the tool's objective; what fits no weights refuses the setting instead of ignoring it."""
    random = np.random.default_rng(5)
    flat = random.uniform(-0.5, 0.5, (120, 1, 1, 1, 1)) + random.normal(0, 0.05, (120, 1, 5, 5, 2))
    np.save(tmp_path / "c.npy", flat.astype(np.float32))
    path = tmp_path / "opt.cfg"
    lines = f"global_calibration = {method}[1, 10, 4, 0.001]\nweight_bits = 4\n"
    path.write_text(f"[Common]\ncalibration_data = c.npy\n{lines}", encoding="utf-8")
    target, model = TargetOptions("aipu", file=str(path)), Model([_network()], source="m.tflite")
    found = tflq.convert(model, target)
    about = json.loads(found.artifacts["recovered.json"])
    assert f"global_calibration={method}" in about["settings"]
    (layer,) = about["recovered"]
    assert (layer["kept"], layer["bits"]) == ("weights" if method == "adaround" else "weights and bias", 4)
    with pytest.raises(UsageError, match=f"global_calibration={method} changes weights"):
        tflq.run(model, target=target)
    source = Model([graph_of(float_network_of(found.graph.extra.floats, "m"))], source="m.txt")  # type: ignore[union-attr]
    with pytest.raises(UnsupportedError, match=r"pass the \.tflite that it was converted from"):
        tflq.convert(source, target)
    path.write_text(f"[Common]\n{lines}", encoding="utf-8")
    with pytest.raises(UsageError, match="recovery fits weights to samples"):
        tflq.convert(model, target)


def test_a_bias_alone_is_nothing_to_adaround() -> None:
    samples = np.zeros((20, 1, 5, 5, 2), np.float32)
    target = TargetOptions("aipu", ("global_calibration=adaround",))
    with pytest.raises(UsageError, match="adaround does not change biases"):
        tflq.recover(Model([_network()], source="m.tflite"), target, samples, bias_only=True)


def test_convert_by_a_file_of_the_tool(tmp_path: Path) -> None:
    """Settings, statistics and samples come from the file; what is written makes the same network again."""
    np.save(tmp_path / "c.npy", np.random.default_rng(3).normal(size=(6, 1, 5, 5, 2)).astype(np.float32))
    path = tmp_path / "opt.cfg"
    path.write_text("[Common]\ncalibration_data = c.npy\nactivation_bits = 16\n", encoding="utf-8")
    target = TargetOptions("aipu", file=str(path))
    assert fill_calibration(target, CalibrationOptions()).strategy == "mean"
    found = tflq.convert(Model([_network()], source="m.tflite"), target)
    assert all(t.affine.bits == 16 for t in (found.graph.tensors[node.outputs[0]] for node in found.graph.nodes))
    found.write_settings(tmp_path / "written.cfg")
    text = (tmp_path / "written.cfg").read_text(encoding="utf-8")
    assert "graph = m.txt\n" in text
    assert "activation_bits = 16\n" in text
    with pytest.raises(UsageError, match="has no file of settings"):
        replace(found, target=find_target("tflite")).write_settings(tmp_path / "other.cfg")


BUILD = """
[Common]
mode = build
[Parser]
model_type = tflite
force_float_ir = true
input_shape = [1,5,5,2]
[Optimizer]
calibration_strategy_for_activation = extrema & <[Convolution]:mean>
quantize_method_for_activation = per_tensor_asymmetric
cast_dtypes_for_lib = true
[GBuilder]
target = X2_1204
"""


def test_a_build_cfg_is_read_by_its_sections() -> None:
    found = read_config(BUILD, "build.cfg")
    assert found.assignments == ("from=ranges", "activations=asymmetric", "activation_range=full")
    assert found.layers == ("IR Convolution:strategy=mean",)
    assert found.calibration == {"strategy": "extrema", "batch_size": 1}
    assert found.ignored == (
        "[Common] mode = build",
        "[Parser] model_type = tflite",
        "[Parser] input_shape = [1,5,5,2]",
        "cast_dtypes_for_lib = true",
    )


def test_the_mode_of_the_parser_that_is_not_modeled() -> None:
    default = read_config(BUILD.replace("force_float_ir = true", "compat_quantized_model = true"), "build.cfg")
    assert default.assignments[0] == "from=integers"


def test_lines_without_effect_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "build.cfg"
    path.write_text(BUILD, encoding="utf-8")
    with pytest.warns(
        TflqWarning, match=r"without effect here: \[Common\] mode = build; \[Parser\] model_type = tflite"
    ):
        merge_settings(TargetOptions("aipu", file=str(path)), CalibrationOptions())


def test_a_build_cfg_is_written_for_the_emitted_files() -> None:
    text = build_config_text(parse_settings(AIPU.settings, ["activations=asymmetric"]), "net")
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    assert parser.sections() == ["Common", "Parser", "Optimizer", "GBuilder"]
    assert parser["Parser"]["force_float_ir"] == "true"
    assert parser["Optimizer"]["calibration_strategy_for_activation"] == "in_ir"
    assert parser["Optimizer"]["graph"] == "net.txt"
    assert read_config(text, "build.cfg").assignments[:2] == ("from=ranges", "activations=asymmetric")
