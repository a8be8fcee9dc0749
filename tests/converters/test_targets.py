"""The table of targets and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from itertools import groupby

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.api.read_model import read_model
from tflq.converters import targets
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import Target, find_target, problems_of, target_names
from tflq.errors import OptionError, TflqError
from tflq.graph import ABSENT, Affine, DType, Graph, GraphBuilder
from tflq.graph.rewriting import trace_passes
from tflq.interpreter.registry import arithmetics

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


@pytest.mark.parametrize("name", target_names())
def test_every_target_is_whole(name: str) -> None:
    found = find_target(name)
    assert isinstance(found, Target)
    assert found.name == name
    assert found.arithmetic in arithmetics()
    assert found.summary
    assert found.specification
    assert len({s.key for s in found.settings}) == len(found.settings)
    assert all(s.help and (not s.choices or s.default in s.choices) for s in found.settings)


@pytest.mark.parametrize("name", target_names())
def test_passes_of_every_target_are_traced(name: str) -> None:
    """Each list has its own owner: an extra pass of an owner runs once."""
    target, graph = find_target(name), settled_graph(read_model(DIGITS).main)
    with trace_passes() as changes:
        target.quantize(graph, parse_settings(target.settings))
    assert changes
    assert all(change.name and change.why and change.before + change.after for change in changes)
    owners = [change.owner for change in changes]
    assert len(list(groupby(owners))) == len(set(owners))


def test_an_unknown_target_lists_the_known() -> None:
    with pytest.raises(
        OptionError, match=r"unknown target 'gap8'; there are .*gap9-ne16, gap9-sq8.*docs/internals/extending.md"
    ):
        find_target("gap8")


def _install(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    entry = EntryPoint(name, value, targets.ENTRY_POINT_GROUP)
    monkeypatch.setattr(targets, "find_entry_points", lambda group: EntryPoints([entry]).select(group=group))


def test_other_packages_add_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "mine", "tflq.converters.gap9:SQ8")
    assert "mine" in target_names()
    assert find_target("mine").name == "gap9-sq8"


class Plain:
    """An object with a target's attributes, but no record."""

    name, summary, arithmetic, specification, settings = "plain", "of methods", "float", {"bits": 32}, ()
    check = quantize = encode = emit = staticmethod(lambda *_: ())


def test_an_object_with_the_attributes_becomes_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "plain", f"{__name__}:Plain")
    found = find_target("plain")
    assert isinstance(found, Target)
    assert (
        found.name,
        found.check(Graph([], [], (), ()), parse_settings(())),
        found.precision_plan,
        found.promotions,
    ) == ("plain", (), None, ())


def test_a_name_exists_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "gap9-sq8", "elsewhere:TARGET")
    with pytest.raises(TflqError, match="exists in tflq and again in elsewhere:TARGET"):
        find_target("gap9-sq8")


def test_what_is_no_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "mine", "tflq.errors:OptionError")
    with pytest.raises(TflqError, match="lacks one of: name"):
        find_target("mine")


def _stateful() -> Graph:
    """A variable that int8 samples are put into: ASSIGN_VARIABLE writes no tensor."""
    b = GraphBuilder()
    kept = Affine.per_tensor(0.5, 0)
    x = b.input("x", (1, 4), DType.INT8, kept)
    handle = b.add("var_handle", [], (1,), DType.RESOURCE, container="", shared_name="v")
    b.node("assign_variable", [handle, x], [])
    return b.build([b.add("read_variable", [handle], (1, 4), DType.INT8, kept)])


def _without_axes() -> Graph:
    """An input of one real number, with no axis at all."""
    b = GraphBuilder()
    return b.build([b.add("relu", [b.input("x", (), DType.FLOAT32)], (), DType.FLOAT32)])


def _of_scales(first: float, weight: float) -> Graph:
    """TFLiteConverter writes an infinite scale where the largest weight is infinite."""
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.INT8, Affine.per_tensor(first, 0))
    weights = b.constant("w", np.ones((2, 4), np.int8), Affine.per_tensor(weight, 0))
    return b.build([b.add("fully_connected", [x, weights, ABSENT], (1, 2), DType.INT8, Affine.per_tensor(0.5, 0))])


@pytest.mark.parametrize("name", target_names())
def test_what_no_target_can_mean_is_a_line_for_each(name: str) -> None:
    target = find_target(name)
    settings = parse_settings(target.settings, [])
    for scales, found in (
        ((0.5, np.inf), "'w' has scale inf"),
        ((0, np.nan), "'w' has scale nan"),
        ((0, 1), "'x' has scale 0"),
    ):
        (line,) = problems_of(target, _of_scales(*scales), settings)
        assert line.startswith(f"operator 0 (fully_connected 'FULLY_CONNECTED_0_0'): tensor {found}")
    assert problems_of(target, _stateful(), settings) or name == "tflite"
    for problem in problems_of(target, _without_axes(), settings):
        assert "relu" in problem or "input" in problem
