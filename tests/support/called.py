"""Plugin that writes which functions each test calls: `pytest -p tests.support.called --calls FILE.json`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pytest

_ROOT = Path(__file__).resolve().parent.parent.parent
_PACKAGE = str(_ROOT / "tflq")

Calls = dict[str, dict[str, object]]
"""Node id of a test -> {"seconds": duration, "functions": ["tflq/FILE.py:line", ...]}."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--calls", help="write the functions that each test calls to this file")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_found] = {}


def pytest_unconfigure(config: pytest.Config) -> None:
    path = config.getoption("--calls")
    if path:
        Path(path).write_text(json.dumps(config.stash[_found]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    start = time.perf_counter()
    names: set[str] = set()
    try:
        with recorded(names):
            return (yield)
    finally:
        item.config.stash[_found][item.nodeid] = {"seconds": time.perf_counter() - start, "functions": sorted(names)}


@contextmanager
def recorded(names: set[str]) -> Iterator[None]:
    """Add the package's functions that are called meanwhile, as "tflq/FILE.py:line", when it is over."""
    called: set[CodeType] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(record)
    try:
        yield
    finally:
        sys.setprofile(None)
        ours = (c for c in called if c.co_filename.startswith(_PACKAGE))
        names |= {f"{Path(c.co_filename).relative_to(_ROOT)}:{c.co_firstlineno}" for c in ours}


_found = pytest.StashKey[Calls]()
