"""Every example of README and docs runs and prints what stands under it; those that take long run in tests/newcomer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.data import data_path
from tests.support.examples import (
    Example,
    documented_pages,
    examples_of,
    failures,
    holds,
    is_standalone,
    is_synopsis,
    make_folder,
    plant_dump,
)
from tests.support.tracked import ROOT

PAGES = documented_pages(ROOT)
SLOW = {
    "sensitivity": "tests/newcomer runs it: every layer at every width on 1000 clips",
    "search": "tests/newcomer runs it: hundreds of settings",
    "recover": "tests/newcomer runs it: all weights",
    "compare kws_ref_model.tflite@gap9-ne16 --set": "tests/newcomer runs it: every layer alone on 1000 clips",
    "--settings kws_mixed.json": "tests/newcomer runs it: it takes the file of the search before it",
    "bench kws01 --model kws_w3.tflite": "tests/newcomer runs it: it takes the file of `recover` before it",
}
ELSEWHERE = {
    "--port": "needs a board: tests/benchmarks/test_board.py",
    "tflq dut": "waits for a host: tests/cli/test_dut.py",
    "tls://": "needs a cluster: tests/parallel",
    "power-of-two": "needs the package of tests/extending, which tests/extending/test_extending.py installs",
    "mish.py": "needs the file of the page: tests/extending",
}


def every_example() -> list[Example]:
    found = [example for page in PAGES if not is_standalone(page) for example in examples_of(page)]
    return [e for e in found if not is_synopsis(e.command)]


def left_to_others(example: Example) -> bool:
    return any(words in example.command for words in ELSEWHERE)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose `tflq` is this one."""
    folder = tmp_path_factory.mktemp("bin")
    for name, options in (("tflq", "-m tflq"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {options} "$@"\n')
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    data = data_path("datasets", "kws01").parents[1]
    path = tmp_path_factory.mktemp("examples")
    make_folder(path, data)
    plant_dump(path, environment)
    return path


def test_examples_print_what_stands_under_them(folder: Path, environment: dict[str, str]) -> None:
    """One test for all of them, in the order of the pages: later ones read what earlier ones write."""
    chosen = [e for e in every_example() if not left_to_others(e) and not any(words in e.command for words in SLOW)]
    wrong = failures(chosen, folder, environment)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", [page for page in PAGES if is_standalone(page)], ids=lambda page: page.stem)
def test_a_tutorial_works_in_an_empty_folder(page: Path, environment: dict[str, str], tmp_path: Path) -> None:
    examples = [example for example in examples_of(page) if not is_synopsis(example.command)]
    assert examples
    wrong = failures(examples, tmp_path, environment)
    assert not wrong, "\n\n".join(wrong)


def test_every_exception_is_still_an_example() -> None:
    commands = [example.command for example in every_example()]
    assert [words for words in (*SLOW, *ELSEWHERE) if not any(words in command for command in commands)] == []


@pytest.mark.parametrize(
    ("printed", "expected", "agrees"),
    [
        ("a\nb\n", ("a", "b"), True),
        ("a\nb\n", ("a",), False),
        ("a\nb\nc\n", ("a", "..."), True),
        ("x\na 12 b\n", ("...", "a ... b"), True),
        ("a\n", ("b",), False),
    ],
)
def test_expected_lines(printed: str, expected: tuple[str, ...], agrees: bool) -> None:
    assert holds(printed, expected) is agrees
