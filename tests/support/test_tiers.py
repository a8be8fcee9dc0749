"""The quick tier: each function once, the same sample whatever the order, everything where tests are named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tiers import FULL_ONLY, SHARE, draw_sample
from tests.support.tracked import ROOT

SOURCE = """
import pytest
from hypothesis import given, settings, strategies

drawn = []

@pytest.mark.parametrize("number", range(70))
def test_of_many(number): pass

@pytest.mark.every
@pytest.mark.parametrize("number", range(3))
def test_every(number): pass

def test_alone(quick): assert quick is QUICK

@settings(max_examples=COUNT, derandomize=True)
@given(strategies.integers())
def test_drawn(number): drawn.append(number)

def test_examples(): assert len(drawn) == EXAMPLES
"""


def run(folder: Path, *arguments: str, is_quick: bool) -> list[str]:
    """Run pytest on the source and return its last lines, without runs of blanks."""
    text = SOURCE.replace("QUICK", str(is_quick)).replace("COUNT", "20")
    (folder / "test_example.py").write_text(text.replace("EXAMPLES", "3" if is_quick else "20"))
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p tests.support.tiers -p no:randomly -p no:tflq\n")
    command = [sys.executable, "-m", "pytest", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("arguments", [(), ("-n", "2", "--dist", "loadfile"), ("--quick", "test_example.py")])
def test_the_quick_tier_is_the_default_and_counts_the_rest(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    lines = run(tmp_path, *arguments, is_quick=True)
    assert "68 left out; scripts/test --all (pytest --all) runs all" in lines
    assert "8 passed" in lines[-1]


@pytest.mark.parametrize("arguments", [("--all",), ("test_example.py",), ("-k", "example")])
def test_everything_runs_where_tests_are_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    lines = run(tmp_path, *arguments, is_quick=False)
    assert not [line for line in lines if "left out" in line]
    assert "76 passed" in lines[-1]


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (SHARE, 1), (SHARE + 1, 2), (10 * SHARE, 10)])
def test_the_sample_does_not_depend_on_the_order(count: int, kept: int) -> None:
    node_ids = [f"test_a.py::test_b[{n}]" for n in range(count)]
    sample = draw_sample(node_ids)
    assert len(sample) == kept
    assert sample == draw_sample(node_ids[::-1])
    assert sample <= set(node_ids)


def test_expensive_parameters_are_taken_last() -> None:
    assert draw_sample(["test_a.py::test_b[tensorflow]", "test_a.py::test_b[litert]"]) == {"test_a.py::test_b[litert]"}
    assert draw_sample(["tensorflow.py::test_b[tensorflow]"]) == {"tensorflow.py::test_b[tensorflow]"}


def test_functions_of_the_full_tier_are_covered_by_others() -> None:
    for node_id in (*FULL_ONLY, *FULL_ONLY.values()):
        path, _, name = node_id.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), node_id
    assert not set(FULL_ONLY) & set(FULL_ONLY.values())
