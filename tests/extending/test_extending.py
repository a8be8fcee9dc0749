"""docs/internals/extending.md: a target, an arithmetic, an operator and a command from outside reach every command of
tflq."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import CommandSession, tflq_process
from tests.support.digits_problem import write_labeled
from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path
from tflq.converters import tflite
from tflq.converters.targets import target_names
from tflq.graph import DType, GraphBuilder, Model

HERE = Path(__file__).parent
PACKAGE = HERE / "power_of_two"
MODEL = demo_model_path()
TARGET = ("--target", "power-of-two")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the package of docs/internals/extending.md."""
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


@pytest.fixture(scope="module")
def search_path(installed: Path) -> str:
    return os.pathsep.join((str(ROOT), str(installed)))


@pytest.fixture(scope="module")
def session(search_path: str) -> Iterator[CommandSession]:
    session = CommandSession(search_path)
    yield session
    session.close()


@pytest.fixture
def tflq(session: CommandSession, tmp_path: Path):
    return partial(session.run, cwd=tmp_path)


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
    assert (
        "docs/internals/extending.md"
        in tflq("run", MODEL, "--target", "power-of-three", "-n", 1, "-o", "o.npz").refused()
    )
    assert (
        "docs/internals/extending.md" in tflq("run", with_custom(tmp_path, "Absent"), "-n", 1, "-o", "o.npz").refused()
    )


def with_custom(folder: Path, code: str) -> Path:
    """Write a model of one custom operator."""
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    graph = b.build([b.add("custom", [x], (1, 4), DType.FLOAT32)])
    graph.nodes[0] = replace(graph.nodes[0], custom_code=code)
    path = folder / f"{code}.tflite"
    tflite.write_model(Model([graph]), path)
    return path


def test_a_custom_operator_from_a_file(tmp_path: Path) -> None:
    """In a process of its own, which keeps the kernel."""
    np.save(tmp_path / "x.npy", np.array([[[-1.0, 0.0, 1.0, 3.0]]], np.float32))
    kernels = ("--kernels", PACKAGE / "mish.py")
    done = tflq_process(
        "run", with_custom(tmp_path, "Mish"), *kernels, "--input", "x.npy", "-o", "out.npz", cwd=tmp_path
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


def write_products(folder: Path) -> Path:
    """Write the model of (x * x) * 2 with the layers that Square2x becomes."""
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    square = b.add("mul", [x, x], (1, 4), DType.FLOAT32)
    graph = b.build([b.add("mul", [square, b.constant("two", np.array(2, np.float32))], (1, 4), DType.FLOAT32)])
    path = folder / "products.tflite"
    tflite.write_model(Model([graph]), path)
    return path


@pytest.mark.parametrize("target", ["aipu", "gap9-ne16", "gap9-sq8", "onnx", "tpu-mlir"])
def test_a_custom_operator_equals_its_operators_on_a_target(tflq, tmp_path: Path, target: str) -> None:
    """The same integers as of a model with these operators; x^2 has half the range of 2 x^2."""
    arguments = ("--target", target, "--calibrate", "x.npy")
    model, products = with_custom(tmp_path, "Square2x"), write_products(tmp_path)
    y = run_on(tflq, model, *arguments)
    assert y.tolist() == run_on(tflq, products, *arguments).tolist()
    done = tflq("convert", model, *arguments, "-o", "out")
    assert done.status == 0, done.err
    assert any((tmp_path / "out").iterdir())


def test_a_custom_operator_reaches_target_openvino(tflq, tmp_path: Path) -> None:
    """It runs in float between layers of quantized values, as each operator without levels."""
    arguments = ("--target", "openvino", "--calibrate", "x.npy")
    model = with_custom(tmp_path, "Square2x")
    assert run_on(tflq, model, *arguments).tolist() == (2 * SQUARE_INPUT**2).tolist()
    assert tflq("convert", model, *arguments, "-o", "out").status == 0
    assert (tmp_path / "out" / "Square2x.xml").read_text().count('type="Multiply"') == 2


def test_the_trace_has_the_expansion_of_a_custom_operator(tflq, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", SQUARE_INPUT)
    arguments = ("--calibrate", "x.npy", "-o", "out", "--trace-passes", "--pass", "expand_operators", "--json")
    (change,) = tflq("convert", with_custom(tmp_path, "Square2x"), "--target", "tpu-mlir", *arguments).json["passes"]
    assert ["custom" in line for line in change["before"]] == [True]
    assert [" = mul(" in line for line in change["after"]] == [False, True, True]


@pytest.mark.parametrize("target", [name for name in target_names() if name != "tflite"])
def test_a_target_without_a_rule_refuses_a_custom_operator(tflq, tmp_path: Path, target: str) -> None:
    mish = (with_custom(tmp_path, "Mish"), "--kernels", PACKAGE / "mish.py")
    refusal = tflq("convert", *mish, "--target", target, "-n", 1, "-o", "out").refused()
    assert "custom operator 'Mish' has no mapping: the target needs a rule of the entry-point group tflq.op" in refusal


def write_negations(folder: Path) -> Path:
    """Write the model of |-(-x)|."""
    b = GraphBuilder()
    t = b.input("x", (1, 4), DType.FLOAT32)
    for operator in ("neg", "neg", "abs"):
        t = b.add(operator, [t], (1, 4), DType.FLOAT32)
    path = folder / "negations.tflite"
    tflite.write_model(Model([b.build([t])]), path)
    return path


def test_a_pass_from_outside_changes_the_graph_of_a_target(tflq, tmp_path: Path) -> None:
    model = write_negations(tmp_path)
    y = run_on(tflq, model, "--target", "tpu-mlir", "--calibrate", "x.npy")
    assert np.allclose(y, np.abs(SQUARE_INPUT), atol=3 / 127)
    arguments = ("--target", "tpu-mlir", "--calibrate", "x.npy", "-o", "out", "--trace-passes", "--json")
    report = tflq("convert", model, *arguments).json
    (change,) = (change for change in report["passes"] if change["name"] == "remove_double_negation")
    assert [line.count("= neg(") for line in change["before"]] == [1, 1, 0]
    assert [line.count("= abs(%x)") for line in change["after"]] == [1]


def test_a_pass_from_outside_is_for_its_owner_only(tflq, tmp_path: Path) -> None:
    model = write_negations(tmp_path)
    np.save(tmp_path / "x.npy", SQUARE_INPUT)
    arguments = ("--target", "openvino", "--calibrate", "x.npy", "-o", "out", "--trace-passes", "--json")
    names = [change["name"] for change in tflq("convert", model, *arguments).json["passes"]]
    assert "remove_double_negation" not in names


def run_tests_of(folder: Path, *paths: Path) -> None:
    """Run the tests in a folder with the packages of some paths."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-c", os.devnull, str(folder)], env=environment, cwd=paths[0], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


def test_the_packages_own_tests_pass(installed: Path) -> None:
    run_tests_of(PACKAGE / "tests", ROOT, installed)


def test_an_elementwise_operator_is_a_row_and_its_kernel(tmp_path: Path) -> None:
    """Both are added to a copy of tflq, in which nothing else changes."""
    shutil.copytree(ROOT / "tflq", tmp_path / "tflq", ignore=shutil.ignore_patterns("__pycache__"))
    for name, module, before in (
        ("row.txt", "graph/operators.py", '    Operator("abs"'),
        ("kernel.txt", "interpreter/kernels/plain/unary.py", '    "abs"'),
    ):
        path = tmp_path / "tflq" / module
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, (PACKAGE / "elementwise" / name).read_text() + before))
    run_tests_of(shutil.copytree(PACKAGE / "elementwise", tmp_path / "elementwise"), tmp_path)


def test_an_elementwise_operator_needs_its_row_and_its_kernel() -> None:
    with pytest.raises(AssertionError, match="4 failed, 1 passed"):
        run_tests_of(PACKAGE / "elementwise", ROOT)


def test_a_file_that_fails_is_refused_in_a_line(tflq, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    assert "bad.py: ZeroDivisionError" in tflq("run", MODEL, "--kernels", "bad.py", "-n", 1, "-o", "o.npz").refused()


def test_the_primitive_rounds_half_to_even(search_path: str) -> None:
    pairs = [(5, 1), (7, 1), (-5, 1), (6, 2), (-6, 2), (3, 0), (3, -2), (2**40 + 1, 1)]
    code = f"from tflq_power_of_two.primitives import shift_half_even as s; print([int(s(x, n)) for x, n in {pairs}])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": search_path}, capture_output=True
    )
    assert json.loads(done.stdout) == [round(Fraction(x) / Fraction(2) ** shift) for x, shift in pairs]


def test_the_pages_code_is_the_packages_files() -> None:
    pages = sorted((ROOT / "docs" / "internals").glob("extending*.md"))
    assert len(pages) == 3
    page = "".join(path.read_text() for path in pages)
    blocks = re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", page, flags=re.S | re.M)
    assert len(blocks) >= 6
    assert page.count("\n```") == 2 * len(blocks), "a block of code without the name of its file"
    for name, block in blocks:
        whole = (PACKAGE / name).read_text()
        assert block in whole, f"the block of {name} is not in that file"
