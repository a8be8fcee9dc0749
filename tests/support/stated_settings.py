"""The keys of a target as its page in docs states them: the rows `| key | values (default) | meaning |`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

from tests.support.tracked import ROOT
from tflq.converters.settings import Setting, Value, parse_settings
from tflq.errors import OptionError

Row = tuple[str, Value, tuple[Value, ...] | range | str, bool]
"""Key, default, what is allowed (words, a range, "from N", or a type), and whether a layer may have it."""
_ROW = re.compile(r"^\| (?P<keys>[a-z_, ]+) \| (?P<values>[^|]+) \((?P<default>[^()|]+)\) \| [^|]+ \|$", re.MULTILINE)
_BOUNDS = re.compile(r"(\d+)\.\.(\d+)")


def stated(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield key, allowed values and default of each row."""
    for row in _ROW.finditer((ROOT / "docs" / "targets" / page).read_text(encoding="utf-8")):
        if row["values"] == "values":
            continue  # the heading
        for name in row["keys"].split(", "):
            yield name, row["values"], row["default"]


def check_key(known: Sequence[Setting], name: str, values: str, default: str) -> None:
    """The default, each word or both ends are taken; what is one step beyond is refused with words that name it."""
    assert str(parse_settings(known).values[name]) == default
    found = _BOUNDS.fullmatch(values)
    allowed = found.groups() if found else values.split(", ")
    for value in allowed:
        assert str(parse_settings(known, [f"{name}={value}"]).values[name]) == value
    beyond = [str(int(found[1]) - 1), str(int(found[2]) + 1)] if found else ["other"]
    words = [f"a whole number, minimum {found[1]} and maximum {found[2]}"] if found else allowed
    for value in beyond:
        with pytest.raises(OptionError, match=f"^{name}={value}: allowed is ") as caught:
            parse_settings(known, [f"{name}={value}"])
        said = str(caught.value).partition("allowed is ")[2]
        assert said == words[0] if found else {*said.split(", ")} == {*words}


def check_layer(known: Sequence[Setting], name: str, default: str, is_per_layer: bool) -> None:
    """Whether a layer may have a value of its own."""
    rule = [f"relu:{name}={default}"]
    if is_per_layer:
        assert parse_settings(known, layers=rule).rules
    else:
        with pytest.raises(OptionError, match=f"{name} holds for the whole graph; use settings {name}=...$"):
            parse_settings(known, layers=rule)


def rows(known: Sequence[Setting]) -> list[Row]:
    """Return each key as a row."""
    return [(s.key, s.default, _allowed(s), s.per_layer) for s in known]


def _allowed(setting: Setting) -> tuple[Value, ...] | range | str:
    if setting.choices:
        return setting.choices
    if setting.minimum is None:
        return type(setting.default).__name__
    return f"from {setting.minimum}" if setting.maximum is None else range(setting.minimum, setting.maximum + 1)


def check_row(known: Sequence[Setting], row: Row) -> None:
    """What is allowed is taken as it is, what lies beside it is refused; a layer may have it, or may not."""
    name, default, allowed, is_per_layer = row
    assert parse_settings(known).values[name] == default
    if isinstance(allowed, range):
        check_key(known, name, f"{allowed[0]}..{allowed[-1]}", str(default))
    elif isinstance(allowed, tuple):
        check_key(known, name, ", ".join(map(str, allowed)), str(default))
    else:
        _check_free(known, name, allowed)
    check_layer(known, name, str(default), is_per_layer)


def _check_free(known: Sequence[Setting], name: str, allowed: str) -> None:
    """What has no words and no upper end: from a number on, true or false, any text."""
    if allowed.startswith("from "):
        least = int(allowed.removeprefix("from "))
        words, wrong = [str(least), str(least + 1_000_000)], [str(least - 1)]
    else:
        words, wrong = {"bool": (["true", "false"], ["2"]), "str": (["some words"], [])}[allowed]
    for word in words:
        assert str(parse_settings(known, [f"{name}={word}"]).values[name]).lower() == word
    for word in wrong:
        with pytest.raises(OptionError, match=f"^{name}={word}: allowed is "):
            parse_settings(known, [f"{name}={word}"])
