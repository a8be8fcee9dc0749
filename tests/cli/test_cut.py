"""`tflq cut` and `tflq dequantize` write whole files or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.single_op import assert_same_bits
from tests.support.tracked import ROOT
from tflq.converters.settled import dequantized
from tflq.converters.tflite import model_to_bytes, read_model
from tflq.converters.tflite_quantizer import TFLITE
from tflq.graph import DType
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.sampling import RandomSamples

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def test_cut_by_name_and_by_index(tmp_path: Path) -> None:
    graph = read_model(DIGITS).main
    first, last = graph.nodes[1].outputs[0], graph.nodes[3].outputs[0]
    name = graph.tensors[first].name
    done = tflq("cut", DIGITS, "--from", name, "--to", last, "-o", "part.tflite", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert done.json["operators"] == [graph.nodes[2].name, graph.nodes[3].name]
    assert done.json["inputs"][0]["name"] == name
    part = read_model(tmp_path / "part.tflite").main
    assert [node.operator for node in part.nodes] == [node.operator for node in graph.nodes[2:4]]
    shown = tflq("cut", DIGITS, "--to", last, "-o", "part.tflite", "--force", cwd=tmp_path).out
    assert f"4 of {len(graph.nodes)} operators" in shown


def test_cut_refuses_and_writes_nothing(tmp_path: Path) -> None:
    line = tflq("cut", DIGITS, "--from", "nowhere", "-o", "part.tflite", cwd=tmp_path).refused()
    assert "no tensor is called 'nowhere'; nearest are" in line
    assert "part.tflite" in tflq("cut", DIGITS, "-o", "missing/part.tflite", cwd=tmp_path).refused()
    assert list(tmp_path.iterdir()) == []


def test_dequantize(tmp_path: Path, oracle: Oracle) -> None:
    done = tflq("dequantize", DIGITS, "-o", "float.tflite", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert done.json["inputs_now_float"] == 1
    read = read_model(tmp_path / "float.tflite")
    assert not any(t.dtype in (DType.INT8, DType.UINT8) for t in read.main.tensors)
    assert tflq("verify", tmp_path / "float.tflite", "-n", "3", "--json").json["samples"] == 3
    assert (
        "10 of 10 operators; float.tflite: "
        in tflq("dequantize", DIGITS, "-o", "float.tflite", "--force", cwd=tmp_path).out
    )


@pytest.mark.parametrize("name", ["kws_ref_model", "pretrainedResnet_quant", "ad01_int8"])
def test_tflite_runs_the_float_view(name: str, oracle: Oracle) -> None:
    model = read_model(data_path("models", f"{name}.tflite"))
    result = dequantized(model)
    samples = list(RandomSamples(result.main, 2, 1).take(0, 2))
    computed = [t for node in result.main.nodes if node.operator != "softmax" for t in node.outputs]
    ours = Engine(result.main).run(samples, computed)
    judged = oracle.run(model_to_bytes(result), samples)
    for t in computed:
        assert_same_bits(ours[t], judged.tensors[t], result.main.tensors[t].name)


def test_a_float_view_is_quantized_again_without_calibration(oracle: Oracle) -> None:
    from tflq.converters.settings import parse_settings

    model = read_model(DIGITS)
    again = TFLITE.quantize(dequantized(model).main, parse_settings(TFLITE.settings))
    before, after = (g.tensors[g.inputs[0]].affine for g in (model.main, again))
    assert np.allclose(before.scale, after.scale, rtol=1e-6)
    assert before.zero_point.tolist() == after.zero_point.tolist()


def test_dequantize_refuses_what_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.tflite").write_bytes(b"no model")
    tflq("dequantize", "x.tflite", "-o", "y.tflite", cwd=tmp_path).refused()
    assert not (tmp_path / "y.tflite").exists()
