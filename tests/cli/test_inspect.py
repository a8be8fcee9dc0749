"""`tflq inspect` shows what is in the file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import tflq
from tests.support.data import data_files, data_path
from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path
from tflq.cli import main
from tflq.converters.targets import target_names
from tflq.converters.tflite import model_to_bytes, read_model
from tflq.graph import DType, GraphBuilder, Model
from tflq.graph.arena import arena_of

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"

# Multiply-accumulates of the MLPerf Tiny reference models, counted by hand from the layers' shapes.
MACS = {
    "kws_ref_model": 64 * 125 * 40 + 4 * (64 * 125 * 9 + 64 * 125 * 64) + 64 * 12,
    "ad01_int8": 2 * 640 * 128 + 6 * 128 * 128 + 2 * 128 * 8,
}


def test_standard_input() -> None:
    command = [sys.executable, "-m", "tflq", "inspect", "-"]
    done = subprocess.run(command, cwd=ROOT, input=DIGITS.read_bytes(), capture_output=True, check=True)
    out = done.stdout.decode()
    assert "stdin.tflite" in out
    assert out.partition("size")[2] == tflq("inspect", DIGITS).out.partition("size")[2]


def test_text() -> None:
    out = tflq("inspect", DIGITS).out
    assert re.search(r"^input +0 ", out, re.MULTILINE)
    assert "conv_2d" in out
    assert "softmax" in out
    assert "MACs: 82,304: 82,304 int8 x int8" in out


def test_tensors_are_listed_on_request() -> None:
    plain, full = tflq("inspect", DIGITS).out, tflq("inspect", DIGITS, "--tensors").out
    assert full.startswith(plain[: plain.index("every operator")] if "every operator" in plain else plain[:200])
    assert "constant" in full


@pytest.mark.parametrize("name", MACS)
def test_macs(name: str) -> None:
    (graph,) = tflq("inspect", data_path("models", f"{name}.tflite"), "--json").json["graphs"]
    assert graph["macs"] == MACS[name]
    assert graph["macs"] == sum(operator["macs"] for operator in graph["operators"])


def test_json_has_everything() -> None:
    path = data_path("models", "kws_ref_model.tflite")
    report = tflq("inspect", path, "--json").json
    (graph,) = report["graphs"]
    assert report["size_bytes"] == path.stat().st_size
    assert report["metadata"] == {"min_runtime_version": 16}
    entry = graph["tensors"][graph["inputs"][0]]
    assert (entry["dtype"], entry["shape"], entry["shape_signature"]) == ("int8", [1, 49, 10, 1], [-1, 49, 10, 1])
    assert entry["quantization"]["zero_point"] == [83]
    assert entry["range"]["maximum"][0] == pytest.approx(25.5295, abs=1e-4)
    assert graph["operators"][0]["name"] == "CONV_2D_0_0"


@pytest.mark.parametrize("path", data_files("corpus"), ids=lambda path: path.stem)
def test_every_model_of_the_corpus(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--tensors"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert main(["inspect", str(path), "--json"]) == 0


def test_activations_of_the_residual_network_are_largest_where_three_images_live() -> None:
    report = tflq("inspect", data_path("models", "pretrainedResnet_quant.tflite"), "--json").json
    arena = report["graphs"][0]["arena"]
    image = 32 * 32 * 16
    assert (arena["peak_bytes"], arena["planned_bytes"], arena["peak_operator"]) == (3 * image, 3 * image, 2)
    assert report["graphs"][0]["macs_by_precision"] == {"int8 x int8": report["graphs"][0]["macs"]}


@pytest.mark.parametrize("path", data_files("corpus"), ids=lambda path: path.stem)
def test_the_plan_never_puts_two_living_tensors_in_one_place(path: Path) -> None:
    for graph in read_model(path).graphs:
        arena = arena_of(graph)
        for n, a in enumerate(arena.buffers):
            for b in arena.buffers[n + 1 :]:
                together = a.first <= b.last and b.first <= a.last
                assert not (together and a.offset < b.offset + b.size and b.offset < a.offset + a.size), (a, b)
        assert arena.peak_bytes <= arena.planned_bytes
        for index, node in enumerate(graph.nodes):
            touched = {t for t in (*node.inputs, *node.outputs) if t >= 0 and not graph.tensors[t].is_constant}
            assert touched <= {b.tensor for b in arena.alive_at(index)}


def test_what_targets_refuse_is_said_with_the_reason(tmp_path: Path) -> None:
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    model = Model([builder.build([builder.add("atan2", [x, x], (1, 4), DType.FLOAT32)])])
    (tmp_path / "m.tflite").write_bytes(model_to_bytes(model))
    done = tflq("inspect", "m.tflite", cwd=tmp_path)
    assert re.search(r"^nnie +operator 0 \(atan2", done.out, re.MULTILINE)
    refused = tflq("inspect", "m.tflite", "--json", cwd=tmp_path).json["refused"]
    assert set(refused) == set(target_names())
    assert len(refused["gap9-ne16"]) == 1


def test_bytes_behind_the_model_are_named(tmp_path: Path) -> None:
    path = tmp_path / "longer.tflite"
    path.write_bytes(demo_model_path().read_bytes() + b"PK\x05\x06" + bytes(18))
    assert "22 bytes behind the model: an empty ZIP archive" in tflq("inspect", path).out
    assert tflq("inspect", path, "--json").json["trailing"] == "22 bytes behind the model: an empty ZIP archive"
    assert tflq("inspect", demo_model_path(), "--json").json["trailing"] is None
