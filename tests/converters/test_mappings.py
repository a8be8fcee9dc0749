"""Rules of other packages for operators of existing targets."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from tflq.converters import mappings
from tflq.converters.nnie.caffe.network import LayerRule
from tflq.converters.tflite_quantizer.rules import INT8, RULES, Rule, rule_of
from tflq.errors import TflqError
from tflq.graph import Node

MINE = {"tflite": Rule((INT8,), same=True), "nnie": 3}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = {"Mine": "MINE", "relu": "MINE", "Broken": "missing", "Text": "__name__"}
    entries = EntryPoints(
        EntryPoint(name, f"{__name__}:{attribute}", mappings.ENTRY_POINT_GROUP) for name, attribute in names.items()
    )
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.attr])
    monkeypatch.setattr(mappings, "find_entry_points", lambda group: entries.select(group=group))
    mappings._load_rules.cache_clear()
    yield
    mappings._load_rules.cache_clear()


def custom(code: str) -> Node:
    return Node("custom", (0,), (1,), custom_code=code)


def test_a_custom_operator_is_found_by_its_code() -> None:
    assert mappings.find_rule("tflite", custom("Mine"), Rule) is MINE["tflite"]
    assert rule_of(custom("Mine")) is MINE["tflite"]
    assert mappings.find_rule("aipu", custom("Mine"), Rule) is None
    assert rule_of(custom("Other")) is None


def test_own_rules_take_precedence() -> None:
    assert rule_of(Node("relu", (0,), (1,))) is RULES["relu"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("Mine", "operator 'Mine' of group tflq.operators: target nnie needs a LayerRule"),
        ("Broken", "operator 'Broken' of .*:missing: 'missing'"),
        ("Text", "operator 'Text' of .*:__name__: "),
    ],
)
def test_entry_points_that_fail_are_named(code: str, message: str) -> None:
    with pytest.raises(TflqError, match=message):
        mappings.find_rule("nnie", custom(code), LayerRule)
