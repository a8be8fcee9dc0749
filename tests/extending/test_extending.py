"""docs/extending.md: a target, an arithmetic, an operator and a command from outside reach every command of tflq."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import Outcome, tflq_process
from tests.support.digits_problem import write_labeled
from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path
from tflq.converters import tflite
from tflq.graph import DType, GraphBuilder, Model

HERE = Path(__file__).parent
PACKAGE = HERE / "power_of_two"
MODEL = demo_model_path()
TARGET = ("--target", "power-of-two")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the package of docs/extending.md."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    source = tmp_path_factory.mktemp("source") / "power_of_two"
    for path in PACKAGE.rglob("*.*"):
        if path.suffix in (".py", ".toml"):
            target = source / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    subprocess.run([*pip, "--target", str(folder), str(source)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labeled(tmp_path_factory.mktemp("digits"), 60)


@pytest.fixture
def tflq(installed: Path, tmp_path: Path):
    def run(*arguments: object) -> Outcome:
        path = os.pathsep.join((str(ROOT), str(installed)))
        return tflq_process(*arguments, cwd=tmp_path, environment={"PYTHONPATH": path})

    return run


def test_targets_lists_it(tflq) -> None:
    assert "power-of-two" in tflq("targets").out


def test_run_gives_every_tensor(tflq, tmp_path: Path) -> None:
    done = tflq("run", MODEL, *TARGET, "-n", 3, "--all-tensors", "-o", "out.npz")
    assert done.status == 0, done.err
    with np.load(tmp_path / "out.npz") as arrays:
        assert all(arrays[name].shape[0] == 3 and arrays[name].dtype == np.int8 for name in arrays)


def test_convert_writes_its_files(tflq, tmp_path: Path) -> None:
    assert tflq("convert", MODEL, *TARGET, "-n", 2, "-o", "out").status == 0
    written = json.loads((tmp_path / "out" / "digits_exponents.json").read_text())
    assert all("shift" in layer for layer in written["layers"] if layer["operator"] == "conv_2d")
    assert (tmp_path / "out" / "digits_constants.h").read_text().startswith("#include <stdint.h>\n")


def test_bench_counts(tflq, digits: Path) -> None:
    rows = tflq("bench", "-m", MODEL, "-d", digits, *TARGET, "--json").json["rows"]
    assert [row["name"] for row in rows] == ["as is", "power-of-two"]
    assert min(row["right"] for row in rows) >= 54


def test_compare_ranks_its_layers(tflq) -> None:
    done = tflq("compare", f"{MODEL}@power-of-two", "-n", 5, "--json")
    assert done.status == 1
    assert done.json["ranking"]


def test_export_writes_vectors(tflq, tmp_path: Path) -> None:
    assert tflq("export", MODEL, *TARGET, "--vectors", "npz", "-n", 1, "-o", "vectors").status == 0
    assert any((tmp_path / "vectors").iterdir())


@pytest.mark.parametrize("operator", ["conv_2d", "fully_connected", "softmax"])
def test_explain_ends_in_what_the_engine_stored(tflq, tmp_path: Path, operator: str) -> None:
    graph = tflite.read_model(str(MODEL)).main
    node = next(node for node in graph.nodes if node.operator == operator)
    index = ",".join("0" * (len(graph.tensors[node.outputs[0]].shape) - 1))
    done = tflq("explain", MODEL, *TARGET, "--tensor", node.name, "--index", index, "-n", 1)
    assert done.status == 0, done.err
    assert "half to even" in done.out


def test_sensitivity_and_search_use_its_widths(tflq, digits: Path, quick: bool) -> None:
    fixed = [x for layer in range(1, 5) for x in ("--layer", f"{layer}:weight_bits=8")]
    data = ("--data", digits)
    found = tflq("sensitivity", MODEL, *TARGET, *fixed, *data, "--jobs", 1 if quick else 2, "--json")
    assert found.status == 0, found.err
    bits = {bits for layer in found.json["layers"] for bits in layer["results"]}
    assert bits == {"6", "4", "3", "2"}
    assert tflq("search", MODEL, *TARGET, *fixed, *data, "--jobs", 1, "--at-least", 50).status == 0


def test_its_command(tflq) -> None:
    assert "exponents" in tflq("--help").out
    exponents = tflq("exponents", MODEL, "--json").json
    assert exponents
    assert all(isinstance(row["exponent"], int) for row in exponents["tensors"])


def test_refusals_name_the_page(tflq, tmp_path: Path) -> None:
    assert "docs/extending.md" in tflq("run", MODEL, "--target", "power-of-three", "-n", 1, "-o", "o.npz").refused()
    assert "docs/extending.md" in tflq("run", with_custom(tmp_path, "Mish"), "-n", 1, "-o", "o.npz").refused()


def with_custom(folder: Path, code: str) -> Path:
    """Write a model of one custom operator."""
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    graph = b.build([b.add("custom", [x], (1, 4), DType.FLOAT32)])
    graph.nodes[0] = replace(graph.nodes[0], custom_code=code)
    path = folder / f"{code}.tflite"
    tflite.write_model(Model([graph]), path)
    return path


def test_a_custom_operator_from_a_file(tflq, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[[-1.0, 0.0, 1.0, 3.0]]], np.float32))
    done = tflq(
        "run", with_custom(tmp_path, "Mish"), "--kernels", PACKAGE / "mish.py", "--input", "x.npy", "-o", "out.npz"
    )
    assert done.status == 0, done.err
    with np.load(tmp_path / "out.npz") as arrays:
        (y,) = arrays.values()
    assert np.allclose(y, [[[-0.30340147, 0.0, 0.8650984, 2.9865]]], atol=1e-4)


SQUARE_INPUT = np.array([[[-1.0, 0.0, 1.0, 3.0]], [[0.5, -2.0, 2.5, -0.25]]], np.float32)


def run_on(tflq, model: Path, *arguments: object) -> np.ndarray:
    """Return the output of a model for SQUARE_INPUT."""
    np.save(model.parent / "x.npy", SQUARE_INPUT)
    done = tflq("run", model, *arguments, "--input", "x.npy", "-o", "out.npz", "--force")
    assert done.status == 0, done.err
    with np.load(model.parent / "out.npz") as arrays:
        (y,) = arrays.values()
    return y


def test_a_custom_operator_runs_in_float(tflq, tmp_path: Path) -> None:
    assert run_on(tflq, with_custom(tmp_path, "Square2x")).tolist() == (2 * SQUARE_INPUT**2).tolist()


def test_a_custom_operator_reaches_target_tflite(tflq, tmp_path: Path) -> None:
    """Scales by hand: x in [-2, 3], y in [0, 18], 255 steps."""
    model = with_custom(tmp_path, "Square2x")
    y = run_on(tflq, model, "--target", "tflite", "--calibrate", "x.npy")
    s_x, s_y = (float(np.float32(high / 255)) for high in (5, 18))
    z_x, z_y = round(-128 + 2 / s_x), -128
    codes = np.clip(np.round(SQUARE_INPUT / np.float32(s_x)) + z_x, -128, 127)
    assert y.dtype == np.int8
    assert y.tolist() == np.clip(np.rint((codes - z_x) ** 2 * (2 * s_x**2 / s_y)) + z_y, -128, 127).tolist()
    assert tflq("convert", model, "--target", "tflite", "--calibrate", "x.npy", "-o", "out").status == 0
    (node,) = tflite.read_model(str(tmp_path / "out" / "model.tflite")).main.nodes
    assert (node.operator, node.custom_code) == ("custom", "Square2x")


def test_a_custom_operator_reaches_target_nnie(tflq, tmp_path: Path) -> None:
    """The built-in SQUARE quantizes its input in the same way; a factor of 2 is exact in float32."""
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    tflite.write_model(Model([b.build([b.add("square", [x], (1, 4), DType.FLOAT32)])]), tmp_path / "square.tflite")
    nnie = ("--target", "nnie", "--calibrate", "x.npy")
    model = with_custom(tmp_path, "Square2x")
    y = run_on(tflq, model, *nnie)
    assert y.tolist() == (2 * run_on(tflq, tmp_path / "square.tflite", *nnie)).tolist()
    assert y.tolist() != (2 * SQUARE_INPUT**2).tolist()
    assert tflq("convert", model, *nnie, "-o", "out").status == 0
    text = (tmp_path / "out" / "Square2x.prototxt").read_text()
    assert 'type: "Power"' in text
    assert "scale: 1.4142135381698608" in text


def test_a_target_without_a_rule_refuses_a_custom_operator(tflq, tmp_path: Path) -> None:
    refusal = tflq("convert", with_custom(tmp_path, "Square2x"), "--target", "aipu", "-n", 1, "-o", "out").refused()
    assert "custom operator 'Square2x' has no mapping" in refusal


def test_a_file_that_fails_is_refused_in_a_line(tflq, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    assert "bad.py: ZeroDivisionError" in tflq("run", MODEL, "--kernels", "bad.py", "-n", 1, "-o", "o.npz").refused()


@pytest.mark.parametrize(("x", "shift"), [(5, 1), (7, 1), (-5, 1), (6, 2), (-6, 2), (3, 0), (3, -2), (2**40 + 1, 1)])
def test_the_primitive_rounds_half_to_even(installed: Path, x: int, shift: int) -> None:
    code = f"from tflq_power_of_two.primitives import shift_half_even as s; print(int(s({x}, {shift})))"
    path = os.pathsep.join((str(ROOT), str(installed)))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True)
    assert int(done.stdout) == round(Fraction(x) / Fraction(2) ** shift)


def test_the_pages_code_is_the_packages_files() -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    blocks = re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", page, flags=re.S | re.M)
    assert len(blocks) >= 6
    assert page.count("\n```") == 2 * len(blocks), "a block of code without the name of its file"
    for name, block in blocks:
        whole = (PACKAGE / name).read_text()
        assert block in whole, f"docs/extending.md: the block of {name} is not in that file"
