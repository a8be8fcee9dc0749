"""Typed keys, layer rules, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.refused import refuses
from tflq.converters.settings import Setting, key, parse_settings, read_options, settings_of
from tflq.errors import OptionError
from tflq.graph import DType, Graph, GraphBuilder

KNOWN = (
    Setting("on", True, "a switch"),
    Setting("bits", 8, "a width", minimum=2, maximum=8),
    Setting("width", 8, "a choice", choices=(8, 16), per_layer=False),
    Setting("share", 0.5, "a number"),
    Setting("way", "exact", "a word", choices=("exact", "fast")),
)


def graph() -> Graph:
    b = GraphBuilder("three")
    x = b.input("x", (1, 2), DType.FLOAT32)
    y = b.add("relu", [x], (1, 2), DType.FLOAT32)
    z = b.add("add", [y, b.constant("c", np.ones(2, np.float32))], (1, 2), DType.FLOAT32)
    return b.build([b.add("relu", [z], (1, 2), DType.FLOAT32)])


def test_defaults_and_types() -> None:
    settings = parse_settings(KNOWN, ["on=No", "bits=4", "share=1e-3", "way=fast"])
    assert settings.values == {"on": False, "bits": 4, "width": 8, "share": 1e-3, "way": "fast"}


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [("1", [1]), ("RELU_0_*", [0, 2]), ("relu", [0, 2]), ("RELU", [0, 2]), ("ADD_0_1", [1]), ("*", [0, 1, 2])],
)
def test_layer_patterns(pattern: str, layers: list[int]) -> None:
    found = parse_settings(KNOWN, [], [f"{pattern}:bits=3,on=false"]).of_layers(graph())
    assert [i for i, values in enumerate(found) if values["bits"] == 3 and values["on"] is False] == layers


def test_later_rules_win() -> None:
    found = parse_settings(KNOWN, ["bits=7"], ["relu:bits=3", "0:bits=5"]).of_layers(graph())
    assert [values["bits"] for values in found] == [5, 7, 3]


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("bits=9", "maximum 8"),
        ("bits=1", "minimum 2"),
        ("bits=many", "a whole number"),
        ("bits=4.5", "a whole number"),
        ("width=12", "8, 16"),
        ("on=maybe", "true or false"),
        ("way=slow", "exact, fast"),
        ("bit=8", "unknown key 'bit'; known are on, bits"),
        ("bits", "allowed is key=value"),
    ],
)
def test_refused_assignments(assignment: str, words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        parse_settings(KNOWN, [assignment])
    assert "\n" not in str(caught.value)


test_refused_rules = refuses(
    lambda rule: parse_settings(KNOWN, [], [rule]),
    OptionError,
    {
        "bits=3": "PATTERN:key=value",
        ":bits=3": "PATTERN:key=value",
        "relu:width=16": "whole graph",
        "relu:bits=3,": "allowed is key=value",
    },
)


def test_a_pattern_must_match() -> None:
    settings = parse_settings(KNOWN, [], ["relu:bits=3", "conv_2d:bits=4"])
    with pytest.raises(OptionError, match=r"'conv_2d' matches no operator; give an index 0\.\.2"):
        settings.of_layers(graph())


@dataclass(frozen=True)
class Layer:
    """Keys of a target that exists here only."""

    bits: int = key(8, "a width", minimum=2, maximum=8)
    kind: str = key("exact", "a word", ("exact", "fast"), name="way")
    whole: bool = key(False, "a switch", per_layer=False)
    known: bool = False


def test_a_record_declares_keys() -> None:
    assert settings_of(Layer, bits=4) == (
        Setting("bits", 4, "a width", minimum=2, maximum=8),
        Setting("way", "exact", "a word", ("exact", "fast")),
        Setting("whole", False, "a switch", per_layer=False),
    )


def test_settings_come_back_as_records() -> None:
    settings = parse_settings(settings_of(Layer), ["whole=true", "bits=6"], ["add:way=fast,bits=3"])
    options = read_options(Layer, graph(), settings)
    assert options.whole == Layer(6, "exact", True)
    assert options.layers == {"RELU_0_0": options.whole, "ADD_0_1": Layer(3, "fast", True), "RELU_0_2": options.whole}
    assert options.of("ADD_0_1").kind == "fast"
    assert options.of("another") == options.whole
    assert settings.names(graph(), 1, ("bits",))
    assert not settings.names(graph(), 1, ("whole",))
    assert not settings.names(graph(), 0, ("bits",))
