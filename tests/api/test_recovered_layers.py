"""Recovered files tell compare and explain what each step took away of the error, layer by layer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command import tflq
from tests.support.digits_problem import model
from tests.support.tracked import ROOT
from tflq.api.recovered_layers import METADATA, RecoveredLayer, recovered_layers

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
THREE = ("-t", "gap9-ne16", "-s", "weight_bits=3")


def test_compare_and_explain_say_what_each_step_gave(tmp_path: Path) -> None:
    done = tflq("recover", DIGITS, *THREE, "--random", "--take", "0:40", "-o", "r.tflite", cwd=tmp_path)
    assert done.status == 0, done.err
    report = tmp_path / "page.html"
    found = tflq(
        "compare", "r.tflite@gap9-ne16", "@float", "-s", "weight_bits=3", "--json", "--report", report, cwd=tmp_path
    )
    layers = {layer["name"]: layer for layer in found.json["recovered"]}
    kept = [layer for layer in layers.values() if layer["kept"] == "weights and bias"]
    assert kept
    assert all(layer["found_db"] > layer["plain_db"] for layer in kept)
    assert "by the weights" in report.read_text()
    sides = ("r.tflite@gap9-ne16", "@float", "-s", "weight_bits=3")
    name = kept[0]["name"]
    line = f"recovered: {name}, 3 bits: {kept[0]['plain_db']:.1f} dB rounded to nearest"
    assert line in tflq("compare", *sides, cwd=tmp_path).out
    element = ("--tensor", name, "--index", "0,0,0,0")
    told = tflq("explain", "r.tflite", *THREE, *element, cwd=tmp_path)
    assert line in told.out, told.err


def layer(**changes: object) -> RecoveredLayer:
    return replace(RecoveredLayer("a", 3, "weights and bias", "", 4.0, 6.5, 9.0), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (layer(), "recovered: a, 3 bits: 4.0 dB rounded to nearest, +2.5 by the bias, +2.5 by the weights"),
        (layer(bias_db=None), "recovered: a, 3 bits: 4.0 dB rounded to nearest, +5.0 by the weights"),
        (layer(kept="bias", found_db=6.5), "recovered: a, 3 bits: 4.0 dB rounded to nearest, +2.5 by the bias"),
        (layer(kept="nothing", bits=None, reason="it is shared"), "not recovered: a: it is shared"),
    ],
)
def test_a_layer_in_a_line(found: RecoveredLayer, text: str) -> None:
    assert found.text == text


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"recovered": [1]}', b'{"recovered": [{"name": "a"}]}', b"\xff"]
)
def test_metadata_of_another_form_says_nothing(content: bytes) -> None:
    assert recovered_layers(replace(model(), metadata={METADATA: content})) == ()


def test_metadata_is_read() -> None:
    entry = {"name": "a", "bits": 3, "kept": "bias", "reason": "", "held_out_db": [4, 6.5], "bias_db": None}
    content = json.dumps({"recovered": [entry]}).encode()
    (found,) = recovered_layers(replace(model(), metadata={METADATA: content}))
    assert (found.plain_db, found.found_db) == (4.0, 6.5)
