"""`tflq export` writes all files or none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


@pytest.mark.parametrize(("kind", "suffixes"), [("c", {".c", ".h"}), ("hex", {".hex"}), ("npz", {".npz"})])
def test_files_and_report(kind: str, suffixes: set[str], tmp_path: Path) -> None:
    done = tflq("export", DIGITS, "--vectors", kind, "-o", "a/b", "-n", "2", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    written = {str(path.relative_to(tmp_path)): path.stat().st_size for path in (tmp_path / "a/b").iterdir()}
    assert done.json["files"] == written
    assert {Path(name).suffix for name in written} == {*suffixes, ".json", ".md"}
    index = json.loads((tmp_path / "a/b/index.json").read_text())
    assert (index["samples"], index["target"], index["vectors"]) == (2, None, kind)
    assert len(index["layers"]) == 10
    first = index["layers"][0]["arrays"][0]
    assert (first["role"], first["shape"][0], first["dtype"]) == ("input", 2, "int8")
    assert first["scale"]


def test_one_layer_of_a_target(tmp_path: Path) -> None:
    arguments = ("-t", "gap9-ne16", "-s", "weight_bits=4", "-l", "0:use_ne16=false", "-l", "0", "-o", "out")
    done = tflq("export", DIGITS, "--vectors", "npz", *arguments, cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert "3 files in out" in done.out
    (layer,) = json.loads((tmp_path / "out" / "index.json").read_text())["layers"]
    assert layer["arithmetic"] == "gap9"
    assert any(array["role"] == "integers" and "multiplier" in array["name"] for array in layer["arrays"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--vectors", "vhdl"), "'vhdl' is not one of 'c', 'hex', 'npz'"),
        (("--vectors", "c", "-l", "nowhere"), "layer pattern 'nowhere' matches no operator"),
        (("--vectors", "c", "-s", "a=b"), "need a target; add --target"),
        (("--vectors", "c", "-l", "0:a=b"), "need a target; add --target"),
        (("--vectors", "c", "--strategy", "kld"), "need a target; add --target"),
        (("--vectors", "c", "-t", "nobody"), "unknown target 'nobody'"),
    ],
)
def test_refusals_write_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert message in tflq("export", DIGITS, *arguments, "-o", "out", cwd=tmp_path).refused()
    assert list(tmp_path.iterdir()) == []


def test_twice_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert tflq("export", DIGITS, "--vectors", "npz", "-l", "3", "-o", folder, cwd=tmp_path).status == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_float_model_is_calibrated_for_its_target(tmp_path: Path) -> None:
    assert tflq("dequantize", DIGITS, "-o", "float.tflite", cwd=tmp_path).status == 0
    images = np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"][:5]
    np.save(tmp_path / "x.npy", images.astype(np.float32))
    arguments = ("-t", "tflite", "--calibrate", "x.npy", "-i", "x.npy", "-l", "0", "-o", "out")
    done = tflq("export", "float.tflite", "--vectors", "npz", *arguments, cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    (layer,) = json.loads((tmp_path / "out" / "index.json").read_text())["layers"]
    assert layer["arrays"][0]["dtype"] == "int8"
    assert layer["arrays"][0]["shape"][0] == 5


def test_jobs_of_the_accelerator(tmp_path: Path) -> None:
    """Registers and memory of NE16's layers; only the output changes, and holds the output's bytes."""
    done = tflq(
        "export", DIGITS, "-t", "gap9-ne16", "--vectors", "npz", "-l", "0", "-n", "2", "-o", "out", cwd=tmp_path
    )
    assert (done.status, done.err) == (0, "")
    (layer,) = json.loads((tmp_path / "out" / "index.json").read_text())["layers"]
    files = {array["name"]: (array["file"], array["identifier"]) for array in layer["arrays"]}
    with np.load(tmp_path / "out" / files["output0"][0]) as stored:
        output, registers, before, after = (
            stored[files[name][1]] for name in ("output0", "ne16_registers", "ne16_before", "ne16_after")
        )
    assert registers.shape == (1, 24)
    address = int(registers[0, 2])
    assert "ne16_outputs" not in files
    assert np.array_equal(after[:, address:], output.reshape(2, -1))
    assert np.array_equal(after[:, :address], before[:, :address])
    assert not before[:, address:].any()
