"""A file of another kind is named by what it is, whatever its name says."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.faults import DIGITS
from tflq.files import recognize_content


def saved(array: object, save: object = np.save) -> bytes:
    file = io.BytesIO()
    save(file, array)  # type: ignore[operator]
    return file.getvalue()


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name in names:
            packed.writestr(name, b"0")
    return file.getvalue()


CONTENTS = {
    "a .npy file of numpy": saved(np.arange(3)),
    "an .npz file of numpy": saved(np.arange(3), np.savez),
    "a PyTorch file": archive("net/data.pkl", "net/version"),
    "a .keras file": archive("metadata.json", "config.json"),
    "a zip archive; unpack it": archive("a.txt"),
    "text": b"1.0 2.0 3.0\n",
    "JSON": b' {"a": 1}',
    "XML": b"<?xml version='1.0'?><a/>",
    "a page of HTML, as a server sends in place of a file; download the file itself": b"\n<!DOCTYPE html><html>",
    "a pointer of Git LFS; fetch the file itself with `git lfs pull`": b"version https://git-lfs.github.com/spec/v1\n",
    "a .tflite model": DIGITS.read_bytes(),
    "": bytes(range(200, 256)),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_content_is_recognized(kind: str) -> None:
    assert recognize_content(CONTENTS[kind]) == kind


def test_onnx_is_recognized() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    helper, kinds = onnx.helper, onnx.TensorProto
    values = [helper.make_tensor_value_info(name, kinds.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    for producer in ("", "pytorch"):
        model = helper.make_model(graph, producer_name=producer)
        assert recognize_content(model.SerializeToString()) == "an ONNX model"


def test_bytes_without_a_sign_are_nothing() -> None:
    draw = np.random.default_rng(0)
    assert {recognize_content(b"\x80" + draw.bytes(300)) for _ in range(200)} == {""}


ARGUMENTS = {
    "text named .npy": (
        ("run", DIGITS, "-i", "t.npy", "-o", "o.npz"),
        "t.npy: is text, not a .npy file; write one with numpy.save",
    ),
    "text named .npz": (
        ("run", DIGITS, "-i", "t.npz", "-o", "o.npz"),
        "t.npz: is text, not a .npz file; write one with numpy.savez",
    ),
    "an archive as a model": (("inspect", "a.tflite"), "a.tflite: is a PyTorch file; ai_edge_torch.convert("),
    "a text as a model": (("verify", "t.npy"), "t.npy: "),
    "a folder as a model": (("inspect", "."), "cannot be read: Is a directory; name a file in it"),
    "a SavedModel": (("inspect", "saved"), "it is a SavedModel of TensorFlow; tf.lite.TFLiteConverter."),
    "a missing folder": (
        ("run", DIGITS, "-i", "no/x.npy", "-o", "o.npz"),
        "no/x.npy: no such file; the folder no ",
    ),
    "a missing output": (("run", DIGITS, "-n", "1", "-o", "no/o.npz"), "No such file or directory; the folder no "),
    "no labels": (
        ("bench", "-m", DIGITS, "-d", "saved"),
        "saved: does not contain y_labels.csv",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_commands_say_what_a_file_is(case: str, tmp_path: Path) -> None:
    for name in ("t.npy", "t.npz"):
        (tmp_path / name).write_text("1 2 3\n")
    (tmp_path / "a.tflite").write_bytes(archive("net/data.pkl"))
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"\x08\x01")
    arguments, words = ARGUMENTS[case]
    assert words in tflq(*arguments, cwd=tmp_path).refused()


FOREIGN = {
    "m.h5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "from_keras_model("),
    "m.keras": (archive("metadata.json", "config.json"), "from_keras_model("),
    "m.task": (archive("face_detector.tflite"), "a bundle of .tflite files, as MediaPipe writes .task; unpack it"),
    "m.litertlm": (b"LITERTLM" + bytes(90), "a LiteRT-LM bundle; extract a .tflite section"),
    "m.onnx": (b"\x08\x08\x12\x07pytorch\x3a\x02\x0a\x00", "an ONNX model; `onnx2tf -i FILE.onnx` writes a .tflite"),
    "m.tflite.gz": (gzip.compress(DIGITS.read_bytes()), "a file packed by gzip; unpack it"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_model_of_another_format_is_refused_with_the_way_to_a_tflite(name: str, tmp_path: Path) -> None:
    content, words = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    assert words in tflq("inspect", tmp_path / name).refused()


def test_a_saved_model_is_refused_with_the_way_to_a_tflite(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01")
    assert "from_saved_model(PATH).convert()" in tflq("inspect", tmp_path).refused()


def test_a_table_with_a_header_or_an_index_column(tmp_path: Path) -> None:
    """A data frame of two samples of the digits' ten outputs, with the column of its index."""
    rows = [",".join(["", *(f"c{n}" for n in range(10))]), *(f"{s}," + ",".join("1" * 10) for s in range(2))]
    (tmp_path / "StatefulPartitionedCall_1:0.csv").write_text("\n".join(rows) + "\n")
    line = tflq("compare", DIGITS, tmp_path / "StatefulPartitionedCall_1:0.csv", "-n", "2").refused()
    assert ".csv: 11 values per row; tensor 'StatefulPartitionedCall_1:0' has 10 elements. Remove the header or" in line
    line = tflq("run", DIGITS, "-i", tmp_path / "StatefulPartitionedCall_1:0.csv", "-o", tmp_path / "o.npz").refused()
    assert "numpy.loadtxt('x.csv', delimiter=',', skiprows=1)" in line
