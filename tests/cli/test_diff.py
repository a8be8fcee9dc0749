"""`tflq diff`: what differs between two models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.command import tflq
from tests.support.faults import CHANNEL, DIGITS, LAYER, corrupted_weights, digits, wrong_multiplier
from tflq.converters.tflite import model_to_bytes
from tflq.diagnosis.model_difference import model_differences
from tflq.graph import DType, Graph, Model


def changed(edit) -> Model:
    graph: Graph = digits().main.copy()
    edit(graph)
    return replace(digits(), graphs=[graph])


def test_equal_models_and_one_corrupted_channel(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(model_to_bytes(corrupted_weights()))
    assert tflq("diff", DIGITS, DIGITS).status == 0
    done = tflq("diff", "bad.tflite", DIGITS, "--json", cwd=tmp_path)
    (finding,) = done.json["findings"]
    assert (done.status, finding["kind"], finding["channel"]) == (1, "constant", CHANNEL)
    assert f"operator {LAYER} (conv_2d 'CONV_2D_0_2') input 1" in finding["where"]
    text = tflq("diff", "bad.tflite", DIGITS, cwd=tmp_path).out
    assert text.startswith("FAIL: 1 difference of bad.tflite from ")
    assert "no such file" in tflq("diff", DIGITS, "nix.tflite").refused().lower()


def test_scales_attributes_and_operators() -> None:
    (scale,) = model_differences(wrong_multiplier(), digits())
    assert (scale.kind, scale.words.startswith(f"scale of channel {CHANNEL} differs")) == ("quantization", True)

    def another_stride(graph: Graph) -> None:
        node = graph.nodes[0]
        graph.nodes[0] = replace(node, attributes=node.attributes.updated(padding="valid"))

    (attribute,) = model_differences(changed(another_stride), digits())
    assert (attribute.kind, attribute.words) == ("attribute", "padding is valid against same")

    def without_softmax(graph: Graph) -> None:
        graph.outputs = (graph.nodes.pop().inputs[0],)

    found = model_differences(changed(without_softmax), digits())
    assert [f.words for f in found if f.kind == "operator"] == ["only in the second model"]


def test_types_shapes_and_files() -> None:
    def other_type(graph: Graph) -> None:
        t = graph.inputs[0]
        graph.tensors[t] = replace(graph.tensors[t], dtype=DType.UINT8, shape=(1, 8, 8, 2))

    kinds = {f.kind for f in model_differences(changed(other_type), digits())}
    assert {"type", "shape"} <= kinds
    described = replace(digits(), description="another", metadata={"a": b"1"})
    assert {f.where for f in model_differences(described, digits()) if f.kind == "file"} >= {"description"}


def test_names_alone_are_no_difference() -> None:
    def renamed(graph: Graph) -> None:
        graph.tensors[3] = replace(graph.tensors[3], name="another")

    assert not model_differences(changed(renamed), digits())
