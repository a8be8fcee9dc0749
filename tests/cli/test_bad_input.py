"""Bad input is one line on standard error that says where, what and what is allowed; status 2; nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.converters.targets import target_names
from tflq.schemas.tflite import BuiltinOperator, Model, TensorType, decode_model, encode_model

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
CONTENT = DIGITS.read_bytes()


def changed(change: Callable[[Model], object]) -> bytes:
    """Return digits.tflite with one thing changed."""
    model = decode_model(CONTENT, "digits")
    change(model)
    return encode_model(model)


def graph(model: Model) -> object:
    return model.subgraphs[0]


def wrong_buffer(model: Model) -> None:
    graph(model).tensors[1].buffer = 9999


def wrong_tensor(model: Model) -> None:
    graph(model).operators[0].inputs = np.array([9999, 1, 2], np.int32)


def wrong_opcode_index(model: Model) -> None:
    graph(model).operators[0].opcode_index = 9999


def unknown_opcode() -> bytes:
    """Return digits.tflite with an operator code that no schema has: found by encoding two that are there."""

    def coded(number: int) -> bytes:
        def change(model: Model) -> None:
            model.operator_codes[graph(model).operators[0].opcode_index].builtin_code = BuiltinOperator(number)

        return changed(change)

    one, other = bytearray(coded(200)), coded(201)
    (place,) = (i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    one[place : place + 4] = (9999).to_bytes(4, "little")
    return bytes(one)


def negative_shape(model: Model) -> None:
    graph(model).tensors[graph(model).operators[0].outputs[0]].shape = np.array([-8, 8, 8, 16], np.int32)


def huge_shape(model: Model) -> None:
    constant = graph(model).operators[0].inputs[1]
    graph(model).tensors[constant].shape = np.array([2**30, 2**30, 8, 8], np.int32)


def shape_of_another_size(model: Model) -> None:
    constant = graph(model).operators[0].inputs[1]
    graph(model).tensors[constant].shape = np.array([17, 3, 3, 1], np.int32)


def no_subgraph(model: Model) -> None:
    model.subgraphs = []


def operator_without_kernel(model: Model) -> None:
    code = model.operator_codes[graph(model).operators[0].opcode_index]
    code.builtin_code, code.custom_code = BuiltinOperator.CUSTOM, "Frobnicate"


def type_without_kernel(model: Model) -> None:
    for t in (*graph(model).operators[0].inputs[:1], *graph(model).operators[0].outputs):
        graph(model).tensors[t].type = TensorType.UINT32


# name -> (content, words of the message)
FILES = {
    "empty": (b"", "the file is empty (0 bytes)"),
    "one byte": (b"T", "model.tflite"),
    "no .tflite": (b"This is a text, and not a short one either.\n" * 9, "model.tflite"),
    "another flatbuffer": (CONTENT[:4] + b"ABCD" + CONTENT[8:], "TFL3"),
    "cut": (CONTENT[: len(CONTENT) // 2], "model.tflite"),
    "cut by a byte": (CONTENT[:-1], "model.tflite"),
    "buffer index": (changed(wrong_buffer), "buffer 9999"),
    "tensor index": (changed(wrong_tensor), "tensor 9999"),
    "opcode index": (changed(wrong_opcode_index), "9999"),
    "opcode": (unknown_opcode(), "9999"),
    "negative shape": (changed(negative_shape), "-8"),
    "huge shape": (changed(huge_shape), "1073741824"),
    "shape against data": (changed(shape_of_another_size), "17"),
    "no subgraph": (changed(no_subgraph), "subgraph"),
}
COMMANDS = {
    "inspect": ("inspect", "model.tflite"),
    "run": ("run", "model.tflite", "-o", "out.npz"),
    "verify": ("verify", "model.tflite"),
    "convert": ("convert", "model.tflite", "-t", "gap9-ne16", "-o", "out"),
    "bench": ("bench", "kws01", "-m", "model.tflite", "-d", "."),
}


@pytest.mark.parametrize("case", FILES)
def test_files(case: str, tmp_path: Path) -> None:
    content, words = FILES[case]
    (tmp_path / "model.tflite").write_bytes(content)
    assert words in tflq("inspect", "model.tflite", cwd=tmp_path).refused()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", ["missing", "cut"])
def test_every_command_refuses_a_bad_file(command: str, case: str, tmp_path: Path) -> None:
    before = set()
    if case == "cut":
        (tmp_path / "model.tflite").write_bytes(CONTENT[:5000])
        before = {"model.tflite"}
    assert "model.tflite: " in tflq(*COMMANDS[command], cwd=tmp_path).refused()
    assert set(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize("change", [operator_without_kernel, type_without_kernel])
def test_no_kernel(command: str, change: Callable[[Model], object], tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(changed(change))
    line = tflq(*COMMANDS[command], cwd=tmp_path).refused()
    assert "operator 0" in line
    assert ("Frobnicate" if change is operator_without_kernel else "uint32") in line
    assert os.listdir(tmp_path) == ["model.tflite"]


def test_inspect_lists_what_has_no_kernel(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(changed(operator_without_kernel))
    assert "no kernel for custom Frobnicate: operator 0" in tflq("inspect", "model.tflite", cwd=tmp_path).out


INPUTS = {
    "missing": (None, "x.npy: no such file"),
    "shape": (np.zeros((5, 9, 9, 1), np.int8), "needs shape [1, 8, 8, 1]"),
    "dtype": (np.zeros((5, 8, 8, 1), np.float32), "needs int8; the array is float32; --real converts"),
    "no sample": (np.zeros((0, 8, 8, 1), np.int8), "x.npy: "),
}


@pytest.mark.parametrize("command", ["run", "verify", "convert"])
@pytest.mark.parametrize("case", INPUTS)
def test_input_arrays(command: str, case: str, tmp_path: Path) -> None:
    array, words = INPUTS[case]
    (tmp_path / "model.tflite").write_bytes(CONTENT)
    if array is not None:
        np.save(tmp_path / "x.npy", array)
    before = set(os.listdir(tmp_path))
    arguments = [word for word in COMMANDS[command] if word not in ("-n", "1")]
    assert words in tflq(*arguments, "-i", "x.npy", cwd=tmp_path).refused()
    assert set(os.listdir(tmp_path)) == before


def test_real_input_that_is_no_number(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 8, 8, 1), np.nan, np.float32))
    assert "NaN" in tflq("run", DIGITS, "-i", "x.npy", "--real", cwd=tmp_path).refused()


OPTIONS = {
    "weight bits": (
        ("--set", "weight_bits=9"),
        "target gap9-ne16: weight_bits=9: allowed is a whole number, minimum 2 and maximum 8",
    ),
    "weight bits of a layer": (("--layer", "0:weight_bits=1"), "weight_bits=1: allowed is"),
    "unknown key": (("--set", "weigth_bits=8"), "unknown key 'weigth_bits'; known are use_ne16, weight_bits"),
    "no value": (("--set", "weight_bits"), "allowed is key=value"),
    "no pattern": (("--layer", "weight_bits=8"), "allowed is PATTERN:key=value"),
    "layer that is not there": (("--layer", "99:weight_bits=8"), "layer pattern '99' matches no operator"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_settings(case: str, tmp_path: Path) -> None:
    arguments, words = OPTIONS[case]
    assert words in tflq("convert", DIGITS, "-t", "gap9-ne16", "-o", "out", *arguments, cwd=tmp_path).refused()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments", [("convert", DIGITS, "-o", "out", "-t"), ("run", DIGITS, "-o", "out.npz", "-t"), ("targets",)]
)
def test_unknown_target(arguments: tuple[object, ...], tmp_path: Path) -> None:
    line = tflq(*arguments, "gap10", cwd=tmp_path).refused()
    assert f"unknown target 'gap10'; there are {', '.join(target_names())}" in line
    assert os.listdir(tmp_path) == []


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    for arguments in (
        ("convert", DIGITS, "-t", "gap9-ne16", "-o", "file"),
        ("convert", DIGITS, "-t", "gap9-ne16", "-o", "file/below"),
        ("run", DIGITS, "-o", "file/x.npz"),
        ("run", DIGITS, "-o", "none/x.npz"),
    ):
        assert "file" in tflq(*arguments, cwd=tmp_path).refused() or "none" in str(arguments)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_bench_lists_the_files_that_are_missing(tmp_path: Path) -> None:
    assert "no task is called 'kws'" in tflq("bench", "kws", "-m", DIGITS, "-d", ".", cwd=tmp_path).refused()
    assert (
        "kws01 needs a model with an input of int8 or float32 [1, 49, 10, 1]"
        in tflq("bench", "kws01", "-m", DIGITS, "-d", ".", cwd=tmp_path).refused()
    )
