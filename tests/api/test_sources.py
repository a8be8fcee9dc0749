"""Every use case takes a model by path, pathlib, bytes, an opened file, or as it is: the answers are the same."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

import tflq
from tflq.api.demo import demo_model_path
from tflq.converters.tflite import read_model
from tflq.errors import FormatError, InputError

PATH = Path(demo_model_path())
GRAPH = read_model(PATH).main
OUTPUT = GRAPH.tensors[GRAPH.outputs[0]].name

USES: dict[str, Callable[..., object]] = {
    "calibrate": lambda model, folder: tflq.calibrate(model).main.outputs,
    "compare": lambda model, folder: tflq.compare(model, "@gap9-ne16", tflq.SampleOptions(count=2)).rows(),
    "compare, second": lambda model, folder: tflq.compare(str(PATH), model, tflq.SampleOptions(count=2)).is_equal,
    "convert": lambda model, folder: sorted(tflq.convert(model, "tpu-mlir").rows()[0]),
    "cut": lambda model, folder: tflq.cut(model).to_dict(),
    "dequantize": lambda model, folder: tflq.dequantize(model).to_dict(),
    "diff": lambda model, folder: tflq.diff(model, str(PATH)).rows(),
    "explain": lambda model, folder: tflq.explain(model, OUTPUT, (0, 3)).to_dict(),
    "export": lambda model, folder: tflq.export(model, folder / "vectors").rows(),
    "inspect": lambda model, folder: tflq.inspect(model).to_dict()["graphs"],
    "run": lambda model, folder: {k: v.tobytes() for k, v in tflq.run(model).tensors.items()},
    "samples": lambda model, folder: tflq.samples(model, count=2).take(0, 2)[0].tobytes(),
    "verify": lambda model, folder: tflq.verify(model, tflq.SampleOptions(count=2)).rows(),
    "tflite.read_model": lambda model, folder: read_model(model).main.inputs,
}


def opened() -> io.BytesIO:
    return io.BytesIO(PATH.read_bytes())


@pytest.mark.parametrize("use", USES)
def test_answers_do_not_depend_on_how_a_model_is_given(use: str, tmp_path: Path) -> None:
    if use == "verify":
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed: it comes with tflq[litert]")
    content = PATH.read_bytes()
    expected = USES[use](str(PATH), tmp_path)
    for given in (PATH, content, bytearray(content), memoryview(content), opened()):
        assert USES[use](given, tmp_path) == expected, type(given)
    with PATH.open("rb") as file:
        assert USES[use](file, tmp_path) == expected


def test_an_opened_file_keeps_its_name_and_content_its_size() -> None:
    with PATH.open("rb") as file:
        assert tflq.inspect(file).to_dict() == tflq.inspect(str(PATH)).to_dict()
    found = tflq.inspect(PATH.read_bytes()).to_dict()
    assert (found["model"], found["size_bytes"]) == ("model", PATH.stat().st_size)


def test_what_is_no_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"^model: "):
        tflq.run(b"no model")
    with pytest.raises(
        InputError, match="source is int 5; allowed is a path, bytes, or a file opened for reading bytes"
    ):
        tflq.run(5)
    with pytest.raises(InputError, match="the opened file is at its end"):
        tflq.inspect(io.BytesIO())
    with pytest.raises(InputError, match=r"read\(\) returned str; open it for reading bytes"):
        tflq.run(io.StringIO("text"))
    with pytest.raises(InputError, match="a frozen run stores the path of its model"):
        tflq.freeze(PATH.read_bytes(), tmp_path / "run.json")
