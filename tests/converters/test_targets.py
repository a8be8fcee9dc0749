"""The table of targets and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from tflq.converters import targets
from tflq.converters.targets import Target, find_target, target_names
from tflq.errors import OptionError, TflqError
from tflq.interpreter.registry import arithmetics


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


def test_an_unknown_target_lists_the_known() -> None:
    with pytest.raises(OptionError, match=r"unknown target 'gap8'; there are .*gap9-ne16, gap9-sq8.*docs/extending.md"):
        find_target("gap8")


def _install(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    entry = EntryPoint(name, value, targets.ENTRY_POINT_GROUP)
    monkeypatch.setattr(targets, "entry_points", lambda group: EntryPoints([entry]).select(group=group))


def test_other_packages_add_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "mine", "tflq.converters.gap9:SQ8")
    assert "mine" in target_names()
    assert find_target("mine").name == "gap9-sq8"


class Plain:
    """An object with a target's attributes, but no record."""

    name, summary, arithmetic, specification, settings = "plain", "of methods", "float", {"bits": 32}, ()
    check = quantise = encode = emit = staticmethod(lambda *_: ())


def test_an_object_with_the_attributes_becomes_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "plain", f"{__name__}:Plain")
    found = find_target("plain")
    assert isinstance(found, Target)
    assert (found.name, found.check(None, None), found.precision_plan, found.promotions) == ("plain", (), None, ())


def test_a_name_exists_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "gap9-sq8", "elsewhere:TARGET")
    with pytest.raises(TflqError, match="exists in tflq and again in elsewhere:TARGET"):
        find_target("gap9-sq8")


def test_what_is_no_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "mine", "tflq.errors:OptionError")
    with pytest.raises(TflqError, match="lacks one of: name"):
        find_target("mine")
