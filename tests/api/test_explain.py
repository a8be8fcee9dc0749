"""`tflq.explain`: what the command prints, from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import OptionError, UnsupportedError, UsageError
from tflq.graph import Affine, DType, Model

DIGITS = str(ROOT / "tflq" / "data" / "digits.tflite")
PLACE = ("CONV_2D_0_2", (0, 1, 1, 1))
FLAGS = ("--tensor", "CONV_2D_0_2", "--index", "0,1,1,1", "--json")


def test_result_is_what_json_prints() -> None:
    found = tflq.explain(DIGITS, *PLACE, sample=2)
    assert json.dumps(found.to_dict(), indent=2, ensure_ascii=False) == command(
        "explain", DIGITS, *FLAGS, "--sample", 2
    ).out.removesuffix("\n")
    assert found.rows()[-1]["value"] == found.explanation.stored
    assert found.is_equal


def test_two_computations() -> None:
    found = tflq.explain(tflq.read_model(DIGITS), *PLACE, target=tflq.TargetOptions("nnie"), against="@float")
    done = command("explain", DIGITS, *FLAGS, "-t", "nnie", "--against", "@float")
    assert json.dumps(found.to_dict(), indent=2, ensure_ascii=False) == done.out.removesuffix("\n")
    assert done.status == int(not found.is_equal)


def test_what_contradicts_itself() -> None:
    with pytest.raises(UsageError, match="add --target"):
        tflq.explain(DIGITS, *PLACE, target=tflq.TargetOptions(settings=("weight_bits=4",)))
    with pytest.raises(UsageError, match="brings its own arithmetic"):
        tflq.explain(DIGITS, *PLACE, target=tflq.TargetOptions("nnie"), arithmetic="tflite")


def test_a_number_is_the_model_s_in_every_target_and_constants_are_explained() -> None:
    graph = tflq.read_model(DIGITS).main
    node = graph.nodes[2]
    for target in ("tpu-mlir", "openvino"):
        found = tflq.explain(DIGITS, str(node.outputs[0]), (0, 1, 1, 3), target=target).explanation
        plain = found.tensor.replace("_", "/")[:20]
        assert plain == graph.tensors[node.outputs[0]].name.replace("_", "/")[:20]
    with pytest.raises(OptionError, match=f"gap9-ne16 computes no tensor for the model's tensor {node.outputs[0]} "):
        tflq.explain(DIGITS, str(node.outputs[0]), (0, 1, 1, 3), target="gap9-ne16")  # it pools in front of that ReLU
    with pytest.raises(OptionError, match="tpu-mlir computes no tensor for the model's tensor 99"):
        tflq.explain(DIGITS, "99", (0,), target="tpu-mlir")
    bias = graph.tensors[node.inputs[2]]
    steps = {s.label: s.value for s in tflq.explain(DIGITS, str(node.inputs[2]), (3,)).explanation.steps}
    assert steps["value in the file"] == int(bias.data[3])
    assert steps["real number in the file"] == pytest.approx(float(bias.data[3] * bias.affine.scale[3]))
    labels = [s.label for s in tflq.explain(DIGITS, str(node.inputs[2]), (3,), target="openvino").explanation.steps]
    assert "value of the target" in labels


def test_a_dump_is_held_against_the_accumulator(tmp_path: Path) -> None:
    graph = tflq.read_model(DIGITS).main
    t = graph.nodes[2].outputs[0]
    own = tflq.run(DIGITS, tflq.SampleOptions(count=1, seed=3), all_tensors=True, output=str(tmp_path / "own.npz"))
    assert own is not None
    arrays = dict(np.load(tmp_path / "own.npz"))
    name = graph.tensors[t].name
    place = tuple(int(i) for i in np.argwhere(arrays[name] > -120)[0])
    arrays[name][place] -= 3
    np.savez(tmp_path / "dump.npz", **{name: arrays[name]})
    arguments = (DIGITS, str(t), place[1:], tflq.SampleOptions(count=1, seed=3))
    found = tflq.explain(*arguments, against=str(tmp_path / "dump.npz"))
    assert not found.is_equal
    assert found.device is not None
    assert found.device.value == found.explanation.stored - 3
    needed = found.device.needed
    assert needed is not None
    assert needed.highest is not None
    assert needed.highest < needed.accumulator
    arrays[name][place] += 3
    np.savez(tmp_path / "dump.npz", **{name: arrays[name]})
    assert tflq.explain(*arguments, against=str(tmp_path / "dump.npz")).is_equal


def aborting() -> Model:
    """A rectifier, a softmax that aborts TFLite's process, and a rectifier."""
    builder = tflq.GraphBuilder("abort")
    affine = Affine.per_tensor(1 / 256, -128)
    x = builder.input("x", (1, 600), DType.INT8, Affine.per_tensor(1e-6, 0))
    y = builder.add("relu", [x], (1, 600), DType.INT8, Affine.per_tensor(1e-6, 0))
    z = builder.add("softmax", [y], (1, 600), DType.INT8, affine, beta=1.0)
    return Model([builder.build([builder.add("relu", [z], (1, 600), DType.INT8, affine)])])


def refused() -> Model:
    """A layer, and behind it one that no kernel takes: a softmax of a scale so small that lowering refuses it."""
    model = aborting()
    graph = model.main
    for t in (0, 1):
        graph.tensors[t] = replace(graph.tensors[t], quantization=Affine.per_tensor(1e-12, 0))
    return model


@pytest.mark.parametrize("make", [aborting, refused])
def test_only_the_part_that_a_tensor_needs_runs(make: Callable[[], Model]) -> None:
    model = make()
    found = tflq.explain(model, "RELU_0_0", (0, 5))
    assert found.explanation.operator == "relu"
    assert found.explanation.stored == max(0, int(tflq.samples(model).take(0, 1)[0].reshape(-1)[5]))
    with pytest.raises(UnsupportedError, match=r"operator 1 \(softmax"):
        tflq.explain(model, "SOFTMAX_0_1", (0, 5))


@pytest.mark.parametrize("name", ["CONV_2D_0_0", "CONV_2D_0_0*", "0-0", "AVERAGE_POOL_2D_0_6", "average_pool_2d"])
def test_names_of_layers_are_accepted(name: str) -> None:
    pool = "pool" in name.lower()
    found = tflq.explain(DIGITS, name, (0, 0, 0, 1))
    assert found.explanation.operator == ("average_pool_2d" if pool else "conv_2d")
    part = tflq.cut(DIGITS, outputs=[name])
    assert part.model.main.nodes[-1].operator == found.explanation.operator
    with pytest.raises(OptionError, match=r"'conv_2d' names 3 layers: 'CONV_2D_0_0', .*; name one of them"):
        tflq.explain(DIGITS, "conv_2d", (0, 0, 0, 1))
    with pytest.raises(OptionError, match="'conv_2d' names 3 layers"):
        tflq.cut(DIGITS, outputs=["conv_2d"])
