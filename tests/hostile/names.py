"""The hostile model: the digits network with names that try every format tflq writes, in a file of such a name."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model, write_model
from tflq.graph import DType, GraphBuilder, Model, Signature

TERMINAL = "\x1b[31m\x1b]0;owned\x07\x9b31m\x7f\r\b\n\t"
BIDIRECTIONAL = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029\u0085"
SHELL = "$(touch PWN);touch PWN;`touch PWN`|touch PWN&'\"\\\n"
MARKUP = "]]><b onload='x'>&amp;{{7*7}}{% x %}*/ // ??/ # --> ``` | [x](y) [red]"
FORMATS = "=[,] [x] 1e5\nname: 1 - \u00e9\u4e2d"
PARTS = (TERMINAL, BIDIRECTIONAL, SHELL, MARKUP, FORMATS, "../../x", "..", "\x00", "a" * 5000, "", "\u00e9\u4e2d")
FILE_NAME = "a;touch PWN;$(touch PWN)`touch PWN`'\"\n\x1b[31m\x9b\u202e\u2028]]>{{x}}&|b.tflite"


def hostile_name(number: int) -> str:
    """Return a name: one of the parts in front of all of them but the long one, so that no two are equal."""
    return f"{PARTS[number % len(PARTS)]}{number}{''.join(p for p in PARTS if len(p) < 1000)}"


def hostile_model() -> Model:
    """Return the digits network with hostile names of tensors, graph, signature and its tensors, and metadata."""
    model = read_model(ROOT / "tflq" / "data" / "digits.tflite")
    graph = model.main
    tensors = [replace(tensor, name=hostile_name(t)) for t, tensor in enumerate(graph.tensors)]
    ports = {hostile_name(51): graph.inputs[0]}, {hostile_name(52): graph.outputs[0]}
    return replace(
        model,
        graphs=[replace(graph, tensors=tensors, name=hostile_name(53))],
        signatures=[Signature(hostile_name(50), 0, *ports)],
        metadata={hostile_name(54 + i): data for i, data in enumerate(model.metadata.values())},
        description=hostile_name(60),
    )


def hostile_custom() -> Model:
    """Return a graph of one custom operator with a hostile name, which nothing can run."""
    b = GraphBuilder(hostile_name(0))
    x = b.input(hostile_name(1), (1, 4), DType.FLOAT32)
    graph = b.build([b.add("custom", [x], (1, 4), DType.FLOAT32)])
    graph.nodes[0] = replace(graph.nodes[0], custom_code=hostile_name(2))
    return Model([graph])


def write_hostile(folder: Path, model: Model) -> Path:
    """Write a model into a new folder under the hostile file name and return its path."""
    folder.mkdir()
    write_model(model, folder / FILE_NAME)
    return folder / FILE_NAME


def assert_shown(text: str, what: str) -> None:
    """Assert that a text has no character that controls anything, but for its own line breaks."""
    found = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert not found, f"{what}: {sorted(map(ascii, found))}"
