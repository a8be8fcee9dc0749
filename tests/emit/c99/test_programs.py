"""Programs of whole networks write the bytes that tflq's engine computes: compiled and run, tensor by tensor."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.hostile.names import hostile_model, write_hostile
from tests.support import c_compiler
from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.tracked import ROOT
from tflq.converters.tflite import write_model
from tflq.graph import Affine, DType, GraphBuilder, Model

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
TARGETS = ("tflite", "gap9-ne16", "gap9-sq8", "aipu", "tpu-mlir", "openvino")


def export(model: Path, folder: Path, target: str, *options: str) -> dict[str, object]:
    chosen = () if target == "tflite" else ("-t", target)
    done = tflq("export", model, "--program", "c99", *chosen, *options, "-o", folder, "--json", cwd=folder.parent)
    assert (done.status, done.err) == (0, "")
    return dict(done.json)


def require_equal(folder: Path, program: Path, *emulator: str) -> None:
    found = c_compiler.run(program, (folder / "samples.bin").read_bytes(), *emulator)
    expected = (folder / "expected.bin").read_bytes()
    assert found == expected, first_difference(folder, found, expected)


def first_difference(folder: Path, found: bytes, expected: bytes) -> str:
    """Name the first tensor that differs."""
    if len(found) != len(expected):
        return f"{len(found)} bytes, {len(expected)} expected"
    tensors = json.loads((folder / "index.json").read_text())["tensors"]
    at = int(np.flatnonzero(np.frombuffer(found, np.uint8) != np.frombuffer(expected, np.uint8))[0])
    at %= sum(t["bytes"] for t in tensors)
    for tensor in tensors:
        if at < tensor["bytes"]:
            return str(tensor["name"])
        at -= tensor["bytes"]
    return ""


@pytest.mark.parametrize("target", TARGETS)
def test_every_tensor_in_every_arithmetic(target: str, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    report = export(DIGITS, folder, target, "-n", "5")
    require_equal(folder, c_compiler.build(folder, "-O1"))
    text = (folder / "network.c").read_text() + (folder / "kernels.h").read_text()
    assert set(re.findall(r"#include <(.*)>", text)) <= {"stdint.h", "string.h", "float.h"}
    assert f"at[{report['arena_bytes']}]" in text
    if target in ("gap9-ne16", "gap9-sq8", "aipu"):  # their arithmetic has no real numbers
        assert not re.search(r"\b(float|double)\b", text)


def test_sanitized_and_optimized(tmp_path: Path) -> None:
    folder = tmp_path / "program"
    export(DIGITS, folder, "tflite", "-n", "2")
    for flags in (("-O0",), ("-O3",), ("-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")):
        require_equal(folder, c_compiler.build(folder, *flags))


MACHINES = {
    "clang": ("clang", ""),
    "arm": ("arm-linux-gnueabihf-gcc", "qemu-arm"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
}
"""Compiler, and what runs its programs where they are of another processor."""


@pytest.mark.parametrize("target", ["tflite", "openvino"])  # both compute with double somewhere
@pytest.mark.parametrize("machine", MACHINES)
def test_other_compilers_and_processors(machine: str, target: str, tmp_path: Path) -> None:
    compiler, emulator = MACHINES[machine]
    runs = (c_compiler.found(emulator),) if emulator else ()
    c_compiler.found(compiler)
    folder = tmp_path / "program"
    export(DIGITS, folder, target, "-n", "3")
    for level in ("-O0", "-O3"):
        require_equal(folder, c_compiler.build(folder, level, *["-static"] * bool(runs), with_compiler=compiler), *runs)


def test_32_bits(tmp_path: Path) -> None:
    if not c_compiler.has_32_bits(tmp_path):
        pytest.skip("the compiler has no library for -m32")
    folder = tmp_path / "program"
    export(DIGITS, folder, "tflite", "-n", "3")
    require_equal(folder, c_compiler.build(folder, "-O2", "-m32", "-msse2", "-mfpmath=sse"))


@pytest.mark.parametrize("array", ["weights", "bias", "multiplier", "shift"])
def test_a_changed_constant_is_seen_in_its_layer(array: str, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    export(DIGITS, folder, "tflite", "-n", "8")
    source = (folder / "network.c").read_text()
    layer = "conv_2d_2"
    start = re.search(rf"{layer}_{array}\[\d+\] = {{\n\s+", source)
    assert start is not None
    number = re.match(r"-?\d+", source[start.end() :])
    assert number is not None
    step = {"weights": 8, "bias": 64, "multiplier": 1 << 24, "shift": 1}[array]
    changed = f"{int(number[0]) + (step if int(number[0]) <= 0 else -step)}"
    (folder / "network.c").write_text(source[: start.end()] + changed + source[start.end() + len(number[0]) :])
    found = c_compiler.run(c_compiler.build(folder), (folder / "samples.bin").read_bytes())
    expected = (folder / "expected.bin").read_bytes()
    assert found != expected
    tensors = json.loads((folder / "index.json").read_text())["tensors"]
    assert first_difference(folder, found, expected) == tensors[2]["name"]


def test_hostile_names_compile(tmp_path: Path) -> None:
    model = write_hostile(tmp_path / "given", hostile_model())
    folder = tmp_path / "program"
    export(model, folder, "tflite")
    require_equal(folder, c_compiler.build(folder))
    for name in ("network.h", "network.c", "kernels.h", "main.c"):
        assert (folder / name).read_bytes().isascii()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-t", "nnie"),
            "CONV_2D 'CONV_2D_0_0' and 2 more: sums of real numbers (sequential convolution) have no form",
        ),
        (("-l", "0"), "a program contains all layers"),
        (("--vectors", "c"), "choose one of"),
    ],
)
def test_refusals_write_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = tflq("export", DIGITS, "--program", "c99", *arguments, "-o", "out", cwd=tmp_path)
    assert message in done.refused()
    assert list(tmp_path.iterdir()) == []


def test_float_network_is_refused(tmp_path: Path) -> None:
    b = GraphBuilder("float")
    x = b.input("x", (1, 4), DType.FLOAT32)
    y = b.add("softmax", [x], (1, 4), DType.FLOAT32, beta=1.0)
    write_model(Model([b.build([y])]), tmp_path / "m.tflite")
    done = tflq("export", tmp_path / "m.tflite", "--program", "c99", "-o", "out", cwd=tmp_path)
    assert "no c99 program, which computes integers: SOFTMAX" in done.refused()


def test_an_order_that_depends_on_data_is_refused(tmp_path: Path) -> None:
    b = GraphBuilder("reverse")
    x = b.input("x", (2, 4), DType.INT16)
    lengths = b.input("lengths", (2,), DType.INT32)
    y = b.add("reverse_sequence", [x, lengths], (2, 4), DType.INT16, seq_dim=1, batch_dim=0)
    write_model(Model([b.build([y])]), tmp_path / "m.tflite")
    done = tflq("export", tmp_path / "m.tflite", "--program", "c99", "-o", "out", cwd=tmp_path)
    assert "no c99 program, which computes integers: REVERSE_SEQUENCE" in done.refused()


def largest_of_a_map(path: Path, axis: list[int], rest: tuple[int, ...]) -> None:
    """Write a model: the largest elements of an int8 map of 9 x 13, behind a ReLU."""
    b = GraphBuilder("largest")
    affine = Affine.per_tensor(np.float32(0.05), -3, 8, True)
    x = b.input("x", (1, 9, 13, 6), DType.INT8, affine)
    r = b.add("relu", [x], (1, 9, 13, 6), DType.INT8, affine)
    axes = b.constant("axes", np.array(axis, np.int32))
    write_model(Model([b.build([b.add("reduce_max", [r, axes], rest, DType.INT8, affine, keep_dims=False)])]), path)


@pytest.mark.parametrize("target", TARGETS[:1] + TARGETS[5:])
def test_the_largest_of_a_hundred_elements_is_a_loop(target: str, tmp_path: Path) -> None:
    largest_of_a_map(tmp_path / "m.tflite", [1, 2], (1, 6))
    folder = tmp_path / "program"
    export(tmp_path / "m.tflite", folder, target, "-n", "9")
    assert (folder / "network.c").read_text().count("largest = ") == 2  # the first, and any other
    require_equal(folder, c_compiler.build(folder))


def test_float16_is_left_to_the_caller(tmp_path: Path) -> None:
    """TPU-MLIR's REDUCE_MAX over the last axis has a result of float16, which C99 has not."""
    largest_of_a_map(tmp_path / "m.tflite", [3], (1, 9, 13))
    folder = tmp_path / "program"
    left = export(tmp_path / "m.tflite", folder, "tpu-mlir", "-n", "2")["left_to_the_caller"]
    assert "float16 has no type in C99" in str(left)
    require_equal(folder, c_compiler.build(folder))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_chosen_by_data(axis: int, tmp_path: Path) -> None:
    b = GraphBuilder("gather")
    x = b.input("x", (3, 4, 5), DType.INT8)
    at = b.input("at", (2, 2), DType.INT32)
    shape = ((2, 2, 4, 5), (3, 2, 2, 5), (3, 4, 2, 2))[axis]
    write_model(Model([b.build([b.add("gather", [x, at], shape, DType.INT8, axis=axis)])]), tmp_path / "m.tflite")
    folder = tmp_path / "program"
    export(tmp_path / "m.tflite", folder, "tflite", "-n", "4")
    require_equal(folder, c_compiler.build(folder))


@pytest.mark.parametrize(
    "name", ["transformer.int8", "unet.int16x8", "reshape_minus_one.int16x8", "lstm_unrolled.int8"]
)
def test_networks_of_a_converter(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    export(data_path("cases", "keras", "files", f"{name}.tflite"), folder, "tflite", "-n", "2")
    require_equal(folder, c_compiler.build(folder))
