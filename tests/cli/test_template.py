"""Templates: written by convert, edited, read back; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.cli import main
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.template import read_template, template_bytes, with_template_ranges
from tflq.converters.tflite import read_model
from tflq.errors import FormatError

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _convert(folder: Path, out: str, *options: str) -> dict[str, bytes]:
    assert main(["convert", str(DIGITS), "-t", "aipu", "-o", out, "-n", "3", *options]) == 0
    return {path.name: path.read_bytes() for path in (folder / out).iterdir()}


def _template(folder: Path, *options: str) -> Json:
    _convert(folder, "first", *options, "--write-template", "t.json")
    found: Json = json.loads((folder / "t.json").read_text(encoding="utf-8"))
    return found


def _write(folder: Path, template: Json) -> None:
    (folder / "t.json").write_text(json.dumps(template), encoding="utf-8")


def test_an_unchanged_template_changes_nothing(tmp_path: Path) -> None:
    options = ("-s", "activations=asymmetric", "-l", "2:weight_bits=4", "-l", "softmax:lut_items_in_bits=9")
    template = _template(tmp_path, *options)
    files = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
    assert _convert(tmp_path, "second", "--template", "t.json") == files
    assert _convert(tmp_path, "third") != files
    assert template["settings"]["activations"] == "asymmetric"
    assert [layer["settings"]["weight_bits"] for layer in template["layers"][:3]] == [8, 8, 4]


def test_it_lists_each_layer_with_ranges_and_figures(tmp_path: Path) -> None:
    template = _template(tmp_path)
    graph = read_model(DIGITS).main
    assert [layer["name"] for layer in template["layers"]] == [node.name for node in graph.nodes]
    for layer, node in zip(template["layers"], graph.nodes, strict=True):
        (name,) = (graph.tensors[t].name for t in node.outputs)
        low, high = layer["ranges"][name]
        assert low <= 0 < high
        assert 0.9 < layer["just_for_display"][name]["cosine"] <= 1
    assert list(template["inputs"]) == [graph.tensors[t].name for t in graph.inputs]


def test_edited_settings_and_ranges_count(tmp_path: Path) -> None:
    template = _template(tmp_path)
    template["layers"][0]["settings"]["activation_bits"] = 16
    (name,) = template["layers"][2]["ranges"]
    template["layers"][2]["ranges"][name] = [0, 51.0]
    template["layers"] = [template["layers"][0], template["layers"][2]]
    _write(tmp_path, template)
    text = _convert(tmp_path, "out", "--template", "t.json")["digits_o.txt"].decode().split("\n\n")
    assert "layer_top_type=[uint16]" in text[2]
    assert f"layer_top_scale=[{np.float32(255 / 51.0)!s}" in text[4]


def test_single_layers_and_ranges_of_the_command_line_win(tmp_path: Path) -> None:
    template = _template(tmp_path)
    (name,) = template["layers"][2]["ranges"]
    template["layers"][2]["settings"]["activation_bits"] = 16
    template["layers"][2]["ranges"][name] = [0, 51.0]
    _write(tmp_path, template)
    (tmp_path / "r.json").write_text(json.dumps({name: [0, 255.0]}), encoding="utf-8")
    options = ("--template", "t.json", "-l", "2:activation_bits=8", "--ranges", "r.json")
    text = _convert(tmp_path, "out", *options)["digits_o.txt"].decode().split("\n\n")
    assert "layer_top_type=[uint8]" in text[4]
    assert "layer_top_scale=[1.0]" in text[4]


def test_run_and_compare_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = _template(tmp_path)
    for layer in template["layers"]:
        layer["settings"]["float"] = True
    _write(tmp_path, template)
    capsys.readouterr()
    tensors = []
    for options in ((), ("--template", "t.json")):
        assert main(["compare", f"{DIGITS}@aipu", "-n", "4", "--json", *options]) == 1
        tensors.append(json.loads(capsys.readouterr().out)["tensors"])
    usual, found = tensors
    assert found[3]["sqnr_db"] > usual[3]["sqnr_db"] + 3
    assert main(["run", str(DIGITS), "-t", "aipu", "-n", "4", "--template", "t.json"]) == 0


@pytest.mark.parametrize("target", ["gap9-sq8", "openvino", "tflite"])
def test_every_target_has_one(tmp_path: Path, target: str) -> None:
    for folder, options in (("a", ("--write-template", "t.json")), ("b", ("--template", "t.json"))):
        assert main(["convert", str(DIGITS), "-t", target, "-o", folder, "-n", "2", *options]) == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def _bytes() -> bytes:
    target = find_target("tflite")
    settings = parse_settings(target.settings)
    return template_bytes("tflite", target.settings, settings, read_model(DIGITS).main, {})


def _changed(change: str) -> bytes:
    """Return a template with one thing wrong: PATH=JSON, numbers in PATH are positions."""
    content = json.loads(_bytes())
    path, _, value = change.partition("=")
    *parents, last = path.split("/")
    place = content
    for key in parents:
        place = place[int(key)] if key.isdecimal() else place[key]
    place[last] = json.loads(value)
    return json.dumps(content).encode()


def _refusal(path: Path, change: str, read: Callable[[Path], object]) -> str:
    path.write_bytes(_changed(change))
    with pytest.raises(FormatError) as caught:
        read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("tflq_template=2", "is no template: it needs 'tflq_template': 1"),
        ("other=1", "unknown key 'other'; known are inputs, layers"),
        ("layers={}", "'layers' must be a list"),
        ("target=3", "'target' the name of a target"),
        ("settings=[]", "settings: allowed is {key: value}"),
        ("settings/x=[]", "settings: allowed is {key: value}"),
        ("inputs=[]", "inputs: ranges are {tensor: [minimum, maximum]}"),
        ("layers/1/index=-1", "layers[1]: needs an 'index'"),
        ("layers/1/name=7", "layers[1]: 'operator' and 'name' are words"),
        ("layers/1/sittings={}", "layers[1]: unknown key 'sittings'"),
        (
            'layers/1/ranges={"a": [1, 0]}',
            "layers[1]: range of 'a' is [1, 0]; allowed are two finite numbers",
        ),
        ('layers/1/ranges={"a": [1]}', "range of 'a' is [1]"),
        ('layers/1/ranges={"a": [0, 1e999]}', "range of 'a' is [0, inf]"),
        ('layers/1/ranges={"a": 3}', "range of 'a' is 3"),
    ],
)
def test_damage_is_refused_by_place(tmp_path: Path, change: str, words: str) -> None:
    message = _refusal(tmp_path / "t.json", change, read_template)
    assert words in message
    assert message.startswith(str(tmp_path / "t.json"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('layers/1/ranges={"a": [0, 1]}', "layer 1: has no tensor 'a'; it has '"),
        ('inputs={"a": [0, 1]}', "inputs: has no tensor 'a'"),
        ("layers/1/index=99", "layer 99: the model has operators 0..9: it is another model"),
        ('layers/1/operator="mul"', "layer 1: is 'mul', in the model it is 'depthwise_conv_2d': it is another model"),
        ('layers/1/name="x"', "layer 1: is 'x', in the model it is 'DEPTHWISE_CONV_2D_0_1'"),
    ],
)
def test_templates_of_other_models_are_refused(tmp_path: Path, change: str, words: str) -> None:
    main = read_model(DIGITS).main
    assert words in _refusal(tmp_path / "t.json", change, lambda path: with_template_ranges(main, read_template(path)))


def test_no_json(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match="is no template"):
        read_template(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-t", "gap9-sq8"), "is a template for target tflite, not gap9-sq8"),
        (("-t", "tflite", "-s", "granularity=per_tensor"), "--set and --template"),
        (("-t", "all"), "--target all"),
    ],
)
def test_uses_that_contradict_it_are_refused(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    (tmp_path / "t.json").write_bytes(_bytes())
    done = tflq("convert", DIGITS, "-o", "out", "--template", "t.json", *options, cwd=tmp_path)
    assert words in done.refused()
    assert not (tmp_path / "out").exists()


def test_values_are_checked_as_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(_changed('layers/1/settings={"weigth_bits": 4}'))
    done = tflq("convert", DIGITS, "-t", "tflite", "-o", "out", "--template", "t.json", cwd=tmp_path)
    assert "unknown key 'weigth_bits'; known are" in done.refused()
