"""Plugin that judges many mutants in one process: `pytest -p tests.support.mutating --mutants TODO.json FILES`.

Test files and the modules of all mutants are imported once. For each mutant the process forks; the child gives the
functions that are already there their changed code, runs the tests that the mutant names until one fails, and says so
by its exit status. That is 5 to 20 times as fast as a fresh process a mutant. What runs while modules are imported is
not changed in this way, so a mutant outside functions, or in one that an import calls, needs a fresh process
(scripts/mutants knows which).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.support.called import recorded

ROOT = Path(__file__).resolve().parent.parent.parent
AT_IMPORT, _CHILD = pytest.StashKey[set[str]](), pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", help="JSON: a list of {number, path, source (mutated), tests, seconds}")
    parser.addoption("--mutant-jobs", type=int, default=1, help="so many at once")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Remember which functions run while modules are imported and tests are collected."""
    session.config.stash[AT_IMPORT] = set()
    with recorded(session.config.stash[AT_IMPORT]):
        found = yield
        load(mutant["path"] for mutant in _todo(session))
        return found


def _todo(session: pytest.Session) -> list[dict]:
    found: list[dict] = json.loads(Path(session.config.getoption("--mutants")).read_text())
    return found


def load(paths: Iterable[str]) -> None:
    """Import modules by their files below ROOT: those of kernels are loaded at their first use, which is too late."""
    for path in paths:
        importlib.import_module(".".join(Path(path).with_suffix("").parts).removesuffix(".__init__"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    todo = _todo(session)
    items = {item.nodeid: item for item in session.items}
    running: dict[int, tuple[dict, float]] = {}
    for mutant in todo:
        if set(mutant["functions"]) & session.config.stash[AT_IMPORT]:
            _say(mutant["number"], "fresh", 0)
            continue
        while len(running) >= session.config.getoption("--mutant-jobs"):
            _wait(running)
        if (child := os.fork()) == 0:
            session.config.stash[_CHILD] = True
            _silent()
            change(ROOT / mutant["path"], mutant["source"])
            session.items[:] = _choose(items, mutant["tests"])
            return None
        running[child] = (mutant, time.monotonic())
    while running:
        _wait(running)
    return True


def _choose(items: dict[str, pytest.Item], names: list[str]) -> list[pytest.Item]:
    """Return the tests of node ids and of files, in the order of their names."""
    of_files: dict[str, list[pytest.Item]] = {}
    for node_id, item in items.items():
        of_files.setdefault(node_id.split("::")[0], []).append(item)
    return [item for name in names for item in ([items[name]] if "::" in name else of_files.get(name, []))]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End a child at once: nothing of what its parent holds is its own to close."""
    if session.config.stash.get(_CHILD, False):
        os._exit(int(exitstatus))


def _wait(running: dict[int, tuple[dict, float]]) -> None:
    """Wait for one child, or end one that has had its time."""
    while True:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            break
        for number, (mutant, since) in running.items():
            if time.monotonic() - since > mutant["seconds"]:
                os.kill(number, 9)
        time.sleep(0.02)
    mutant, since = running.pop(child)
    took = time.monotonic() - since
    noticed = "timeout" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9 else "failed" if status else ""
    _say(mutant["number"], noticed, took)


def _say(number: int, noticed: str, took: float) -> None:
    os.write(_OUT, json.dumps({"number": number, "noticed": noticed, "seconds": took}).encode() + b"\n")


_OUT = int(os.environ.get("TFLQ_MUTANTS_FD", "1"))


def _silent() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def change(path: Path, mutated: str) -> None:
    """Give every function of a module that is there the code that it has in the mutated source.

    Functions are found by name and line: pytest has written those with assertions anew, so their code is another than
    what the file compiles to. Lambdas of one line, which have no assertions, are told apart by their code.
    """
    before = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    after = compile(mutated.encode(), str(path), "exec", dont_inherit=True)
    places: dict[tuple[str, int], list[tuple[CodeType, CodeType]]] = {}
    for pair in _pairs(before, after):
        places.setdefault((pair[0].co_name, pair[0].co_firstlineno), []).append(pair)
    gc.unfreeze()  # tests/support/tiers.py freezes what collection has made, which hides it from get_objects
    for function in [f for f in gc.get_objects() if isinstance(f, FunctionType)]:
        code = function.__code__
        if code.co_filename == str(path):
            pairs = places.get((code.co_name, code.co_firstlineno), [])
            changed = [new for old, new in pairs if old != new and (len(pairs) == 1 or old == code)]
            function.__code__ = changed[0] if changed else code


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield before, after
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (before, after)]
    for pair in zip(*inner, strict=True):
        yield from _pairs(*pair)
