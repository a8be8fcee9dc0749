"""Every result in every form: text, page, JSON, CSV; verdict and numbers agree, tables fit every terminal."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.test_fit import on_terminal
from tests.support.command import Outcome, tflq
from tests.support.every_result import COMMANDS, make_folder
from tflq.api.result import Result
from tflq.cli import output
from tflq.cli.terminal import page_lines

SCHEMA = json.loads(files("tflq").joinpath("data/results.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forms")
    make_folder(path)
    return path


FORCE = dict.fromkeys(("convert", "cut", "dequantize", "export", "recover", "verify"), ("--force",))


def result_of(arguments: tuple[object, ...], folder: Path) -> tuple[Result, Outcome]:
    """Run a command; return its result and its JSON."""
    results: list[Result] = []

    def show(result: Result, *requested: str) -> int:
        results.append(result)
        return original(result, *requested)

    original = output.show
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "show", show)
        done = tflq(
            *arguments, "--json", *(["--force"] if "-o" in arguments or "--freeze" in arguments else []), cwd=folder
        )
    assert done.status in (0, 1), done.err
    return results[0], done


@pytest.mark.parametrize("name", COMMANDS)
def test_all_forms_agree(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result, done = result_of(COMMANDS[name], folder)
    report = done.json
    verdict = result.verdict
    assert report["schema"] == 1
    assert report["verdict"]["text"] == verdict.text
    assert done.status == result.status
    assert verdict.word in ("OK", "rounding only", "FAIL", "")
    assert (result.status == 1) <= (verdict.word in ("FAIL", "rounding only"))
    lines = list(page_lines(result.page(), None, [table.name for table in result.tables()]))
    assert lines[0] == verdict.text
    page = html.unescape(result._repr_html_() or "")
    assert f'<p class="verdict">{verdict.text}</p>' in page
    text = "\n".join(lines)
    for table in result.tables():
        if table.is_keyed and table.in_json:
            assert report[table.name] == json.loads(json.dumps(table.records()))
        for row in table.rows if table.terminal != "never" else ():
            for column in table.visible_columns:
                assert column.cell(row).strip() in page
                assert column.cell(row).strip() in text or "\n" in column.cell(row)
        if table.is_keyed:
            rows = list(csv.DictReader(io.StringIO(result.to_csv(table.name))))
            assert len(rows) == len(table.rows) == len(result.rows(table.name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_key_is_documented(name: str, folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: it checks results")
    report = result_of(COMMANDS[name], folder)[1].json
    jsonschema.validate(report, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**report, "a_key_that_is_not_documented": 1}, SCHEMA)


TEXT = [name for name in COMMANDS if name not in ("recover", "performance", "convert to all", "tune")]


@pytest.mark.parametrize("columns", [80, 100, 120, 160])
def test_no_line_is_wider_than_the_terminal(columns: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and sentences fit; a line of one word, such as a path, may be as long as the word."""
    monkeypatch.chdir(folder)
    for name in TEXT:
        result = result_of(COMMANDS[name], folder)[0] if name not in RESULTS else RESULTS[name]
        RESULTS[name] = result
        lines = list(page_lines(result.page(), columns, [table.name for table in result.tables()]))
        assert [line for line in lines if len(line) > columns and " " in line.strip()] == [], name
        whole = "".join(re.sub(r"\s", "", line) for line in lines)
        for table in result.tables():
            names = [c for c in table.visible_columns if c.kind == "identifier" and not c.rank]
            for row in table.rows if table.terminal != "never" and len(names) == len(table.visible_columns) else ():
                assert all(re.sub(r"\s", "", c.cell(row)) in whole for c in names), name


RESULTS: dict[str, Result] = {}


@pytest.mark.parametrize("columns", [80, 120])
def test_a_pseudo_terminal_gets_the_same_lines(columns: int, folder: Path) -> None:
    for name in ("inspect", "compare"):
        lines = on_terminal(columns, *COMMANDS[name])
        assert [line for line in lines if len(line) > columns and " " in line.strip()] == []


def test_csv_is_a_table_of_the_result(folder: Path) -> None:
    done = tflq(*COMMANDS["estimate"], "--csv", "layers", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert {"name", "cycles.value", "cycles.grade"} <= set(rows[0])
    assert "this result has layers" in tflq(*COMMANDS["estimate"], "--csv", "nothing", cwd=folder).err


def test_the_text_of_a_model_has_at_most_20_lines() -> None:
    code = "import tflq; print(repr(tflq.read_model(tflq.demo().path)))"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 5 < len(text.splitlines()) <= 20
    assert "conv_2d" in text
