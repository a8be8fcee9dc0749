"""Attributes are read through getters that refuse another type."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.errors import GraphError
from tflq.graph import Attributes

SOME = Attributes(
    {
        "padding": "same",
        "stride": 2,
        "alpha": 0.5,
        "keep": True,
        "axes": (1, 2),
        "array": np.array([3, 4]),
        "gone": None,
    }
)


def test_values() -> None:
    assert SOME.text("padding") == "same"
    assert SOME.integer("stride") == 2
    assert SOME.real("alpha") == 0.5
    assert SOME.real("stride") == 2.0
    assert SOME.boolean("keep") is True
    assert SOME.integers("axes") == (1, 2)
    assert SOME.integers("array") == (3, 4)
    assert SOME.reals("array") == (3.0, 4.0)


def test_defaults_stand_in_for_what_is_absent() -> None:
    assert SOME.integer("nothing", 7) == 7
    assert SOME.integers("gone", (1,)) == (1,)
    assert SOME.boolean("nothing", False) is False
    assert SOME.text("nothing", "same") == "same"
    assert SOME.real("nothing", 0.25) == 0.25


@pytest.mark.parametrize(
    ("getter", "name", "allowed"),
    [
        ("integer", "padding", "a whole number"),
        ("integer", "keep", "a whole number"),
        ("integer", "alpha", "a whole number"),
        ("real", "keep", "a number"),
        ("boolean", "stride", "true or false"),
        ("text", "stride", "a name"),
        ("reals", "alpha", "a list of numbers"),
        ("integers", "stride", "a list of whole numbers"),
        ("integer", "nothing", "a whole number"),
        ("integers", "gone", "a list of whole numbers"),
    ],
)
def test_another_type_is_refused(getter: str, name: str, allowed: str) -> None:
    with pytest.raises(GraphError, match=rf"attribute {name}: found .*, allowed is {allowed}; has padding, stride"):
        getattr(SOME, getter)(name)


def test_updated_leaves_the_original() -> None:
    changed = SOME.updated(stride=3, new=1)
    assert (changed["stride"], changed["new"], SOME["stride"]) == (3, 1, 2)
    assert "new" not in SOME
    assert len(changed) == len(SOME) + 1


def test_equality_is_of_bits_and_types() -> None:
    assert Attributes({"a": 1}) != Attributes({"a": True})
    assert Attributes({"a": 0.0}) != Attributes({"a": 0})
    assert Attributes({"a": np.zeros(2)}) == Attributes({"a": np.zeros(2)})
    assert hash(Attributes({"a": 1, "b": 2})) == hash(Attributes({"b": 2, "a": 1}))
