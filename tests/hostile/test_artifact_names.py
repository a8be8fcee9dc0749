"""Hostile names through every target and export: each file parses by a reader of its format, and scripts do no more."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.hostile.names import assert_shown, hostile_model, hostile_name, write_hostile
from tests.support.gap9_read_back import read_graph
from tflq.api.convert import convert
from tflq.api.export import export
from tflq.converters.openvino.ir.files import network_from_bytes
from tflq.converters.targets import target_names
from tflq.converters.tflite import model_from_bytes, read_model
from tflq.schemas.aipu import read_network

_TEXT = (".sh", ".xml", ".json", ".txt", ".cfg", ".prototxt", ".md", ".c", ".h", ".hex", "table")
_PROTOTXT = re.compile(r"""\s*(layer \{|\w+ \{|\}|\w+: (-?[\w.+-]+|"([^"\\\n]|\\["\\]|\\[0-3][0-7]{2})*"))""")
_CFG = re.compile(r"\[\w+\] [\w./-]+")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the hostile model below `given` and nothing else, in which the test runs."""
    write_hostile(tmp_path / "given", hostile_model())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def converted(folder: Path, target: str) -> dict[str, bytes]:
    """Convert the hostile model; return the files, which have plain names and lie in the folder that was named."""
    (model,) = (folder / "given").iterdir()
    convert(model, target, "out")
    assert sorted(p.name for p in folder.iterdir()) == ["given", "out"]
    paths = [p for p in folder.rglob("*") if p.is_file() and p != model]
    assert all(p.parent == folder / "out" and re.fullmatch(r"\w[\w.-]*", p.name) for p in paths)
    files = {p.name: p.read_bytes() for p in paths}
    for name, content in files.items():
        if name.endswith(_TEXT):
            assert_shown(content.decode(), name)
    return files


def only(files: dict[str, bytes], ending: str) -> bytes:
    (found,) = (content for name, content in files.items() if name.endswith(ending))
    return found


def syntax(path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is not None:
        subprocess.run([compiler, "-fsyntax-only", "-std=c99", "-Wall", "-Werror", str(path)], check=True)


def test_every_target_has_a_test() -> None:
    assert set(target_names()) == {
        "aipu",
        "gap9-ne16",
        "gap9-sq8",
        "nnie",
        "onnx",
        "openvino",
        "tflite",
        "tflm",
        "tpu-mlir",
    }


@pytest.mark.parametrize("target", ["gap9-ne16", "gap9-sq8"])
def test_gap9(folder: Path, target: str) -> None:
    files = converted(folder, target)
    content = json.loads(files["quantization.json"])
    assert content["tensors"][0]["name"] == hostile_name(0)
    assert read_graph(files).tensors[0].name == hostile_name(0)
    syntax(folder / "out" / "constants.c")
    with np.load(folder / "out" / "constants.npz") as arrays:
        assert arrays.files


def test_aipu(folder: Path) -> None:
    files = converted(folder, "aipu")
    texts = [name for name in files if name.endswith(".txt")]
    assert len(texts) == 2
    for name in texts:
        network = read_network(files[name].decode(), files[name.replace(".txt", ".bin")])
        assert len({layer.name for layer in network.layers}) == len(network.layers)


def test_tflm(folder: Path) -> None:
    files = converted(folder, "tflm")
    assert model_from_bytes(files["model.tflite"], "written").main.nodes
    assert "MicroMutableOpResolver" in only(files, ".h").decode()


def test_tpu_mlir(folder: Path) -> None:
    """The script parses, and with stubs of the vendor's commands it runs these and nothing else."""
    pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    files = converted(folder, "tpu-mlir")
    table = only(files, "_cali_table").decode().splitlines()
    assert all(len(line.split()) == 4 for line in table[1:])
    json.loads(only(files, "_integers.json"))
    (script,) = (folder / "out").glob("*.sh")
    subprocess.run(["sh", "-n", script], check=True)
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in ("model_transform.py", "model_deploy.py"):
        (stubs / name).write_text(f'#!/bin/sh\necho "{name} $#" >> called\n')
        (stubs / name).chmod(0o755)
    subprocess.run(["/bin/sh", script], check=True, cwd=folder / "out", env={"PATH": str(stubs)})
    called = (folder / "out" / "called").read_text().splitlines()
    assert called == ["model_transform.py 8", "model_deploy.py 10"]
    assert {p.name for p in folder.rglob("*") if p.is_file() and p.parent == folder / "out"} == {*files, "called"}


def test_nnie(folder: Path) -> None:
    files = converted(folder, "nnie")
    assert all(_PROTOTXT.fullmatch(line) for line in only(files, ".prototxt").decode().splitlines()[1:])
    assert all(_CFG.fullmatch(line) for line in only(files, ".cfg").decode().splitlines())
    json.loads(only(files, "_clipping.json"))


def test_onnx(folder: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    onnx.checker.check_model(onnx.load_from_string(only(converted(folder, "onnx"), ".onnx")))


def test_openvino(folder: Path) -> None:
    files = converted(folder, "openvino")
    xml = only(files, ".xml")
    layers = ElementTree.fromstring(xml).findall("layers/layer")
    assert len({layer.get("name") for layer in layers}) == len(layers)
    assert len(network_from_bytes(xml, only(files, ".bin"), "out").layers) == len(layers)
    json.loads(files["levels.json"])


def test_tflite(folder: Path) -> None:
    files = converted(folder, "tflite")
    assert all(name.endswith(".tflite") for name in files)
    assert read_model(next((folder / "out").iterdir())).main.tensors[0].name == hostile_name(0)


@pytest.mark.parametrize(("kind", "target"), [("c", "aipu"), ("hex", "aipu"), ("npz", None)])
def test_vectors(folder: Path, kind: Literal["c", "hex", "npz"], target: str | None) -> None:
    """Layers of aipu are called after tensors: their files and arrays have plain names, no two the same."""
    (model,) = (folder / "given").iterdir()
    export(model, "out", target=target, vectors=kind)
    assert sorted(p.name for p in folder.iterdir()) == ["given", "out"]
    names = [p.name for p in (folder / "out").iterdir()]
    assert all(re.fullmatch(r"\w[\w.]*", name, re.ASCII) for name in names)
    assert len({name.lower() for name in names}) == len(names)
    index = (folder / "out" / "index.json").read_text("utf-8")
    assert_shown(index, "index.json")
    listed = {array["file"] for layer in json.loads(index)["layers"] for array in layer["arrays"]}
    assert listed <= set(names)
    for name in names:
        if name.endswith(".c"):
            syntax(folder / "out" / name)
    assert not (folder / "PWN").exists()
    assert os.getcwd() == str(folder)
