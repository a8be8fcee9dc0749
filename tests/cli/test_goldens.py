"""Every command prints and writes what was recorded of it (tests/support/goldens.py)."""

from __future__ import annotations

import pytest

from tests.support.goldens import CALLS, FOLDER, first_difference, read, record
from tflq.cli.app import COMMANDS

WITHOUT = {
    "demo": "tests/cli/test_demo.py reads its story",
    "dut": "a loop over a serial line: tests/cli/test_dut.py",
}
"""Commands without a recording, with the reason."""


@pytest.mark.every
@pytest.mark.parametrize("name", CALLS)
def test_a_command_prints_what_was_recorded(name: str) -> None:
    difference = first_difference(read(name), record(CALLS[name]))
    assert not difference, f"{difference}\nif it is meant: python -m tests.support.goldens {name}"


def test_every_command_is_recorded() -> None:
    recorded = {call.arguments.split()[0] for call in CALLS.values()}
    assert recorded | set(WITHOUT) == set(COMMANDS)
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.json.xz" for name in CALLS}


def test_a_difference_is_one_line_of_each_side() -> None:
    expected, actual = {"out": ["a", "b"], "err": []}, {"out": ["a", "c"], "err": ["late"]}
    assert first_difference(expected, actual) == "out, line 2\nexpected: b\nactual:   c"
    assert first_difference({"out": ["a"]}, {"out": ["a", ""]}) == "out, line 2\nexpected: \nactual:   "
    assert first_difference(expected, expected) == ""
