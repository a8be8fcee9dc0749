"""Keyword arguments of the use cases: the same names and types as the fields of the option records."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import tflq.api
from tflq.api import keywords

RECORDS = {name: vars(keywords)[name] for name in vars(keywords) if name.endswith("Keywords")}


def record_of(name: str) -> type:
    wanted = name.replace("Keywords", "Options")
    modules = (importlib.import_module(m.name) for m in pkgutil.iter_modules(tflq.api.__path__, "tflq.api."))
    return next(vars(m)[wanted] for m in modules if getattr(vars(m).get(wanted), "__module__", "") == m.__name__)


@pytest.mark.parametrize("name", RECORDS)
def test_keywords_are_the_fields(name: str) -> None:
    declared = {key: kind.__forward_arg__ for key, kind in RECORDS[name].__annotations__.items()}
    assert declared == {field.name: field.type for field in fields(record_of(name))}


def test_every_use_case_has_typed_keywords() -> None:
    names = set()
    for module in pkgutil.iter_modules(tflq.api.__path__, "tflq.api."):
        for value in vars(importlib.import_module(module.name)).values():
            is_own = inspect.isfunction(value) and value.__module__ == module.name
            changes = inspect.signature(value).parameters.get("changes") if is_own else None
            if changes is not None and changes.kind is inspect.Parameter.VAR_KEYWORD:
                names.add((value.__name__, changes.annotation))
    typed = {name for name, annotation in names if annotation.removeprefix("Unpack[").removesuffix("]") in RECORDS}
    assert {name for name, _ in names} - typed == {"search"}  # overloaded, one signature per kind of options
    assert len(typed) == 14


def test_a_type_checker_finds_a_wrong_name(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    calls = ('run("m", treads=2)', 'search("m", "t", at_lest=3.0)', 'verify("m", jobs="two")', 'run("m", threads=2)')
    program.write_text("import tflq\n" + "".join(f"tflq.{call}\n" for call in calls))
    command = [sys.executable, "-m", "mypy", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(tflq.__path__[0]).parent)
    lines = {line.split(":")[1] for line in done.stdout.splitlines() if f"{program.name}:" in line and "error" in line}
    assert lines == {"2", "3", "4"}, done.stdout
