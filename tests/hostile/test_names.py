"""Hostile names through every command: nothing printed controls a terminal, every file parses, none lies elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.hostile.names import FILE_NAME, assert_shown, hostile_custom, hostile_model, hostile_name, write_hostile
from tests.support.oracle import oracle as oracle
from tflq.cli import main
from tflq.converters.tflite import read_model

pytestmark = pytest.mark.usefixtures("oracle")

Command = Callable[..., "tuple[int, str]"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run tflq on the hostile model in an empty folder; whatever it prints is checked."""
    model = write_hostile(tmp_path / "given", hostile_model())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def run(*arguments: object) -> tuple[int, str]:
        capfd.readouterr()
        status = main([str(model) if a == "MODEL" else str(a) for a in arguments])
        out, err = capfd.readouterr()
        assert_shown(out, f"output of {arguments}")
        assert_shown(err, f"errors of {arguments}")
        assert "internal error" not in err
        assert [p.name for p in tmp_path.iterdir()] in (["given", "here"], ["here", "given"])
        assert [p.name for p in model.parent.iterdir()] == [FILE_NAME]
        assert not [p for p in tmp_path.rglob("*") if p.name == "PWN"]
        return status, out

    return run


COMMANDS: dict[str, tuple[object, ...]] = {
    "inspect": ("inspect", "MODEL", "--tensors"),
    "inspect json": ("inspect", "MODEL", "--json"),
    "run json": ("run", "MODEL", "-n", 1, "--all-tensors", "--json"),
    "compare": ("compare", "MODEL", "--json", "-n", 2),
    "compare all": ("compare", "MODEL", "@gap9-sq8", "-n", 2, "--tolerance", 1),
    "explain": ("explain", "MODEL", "--tensor", "CONV_2D_0_0", "--index", "0,1,1,2"),
    "explain beside": ("explain", "MODEL", "--tensor", "23", "--index", "0,1", "--against", "@gap9-sq8"),
    "diff": ("diff", "MODEL", Path(__file__).parents[2] / "tflq" / "data" / "digits.tflite"),
    "sensitivity": ("sensitivity", "MODEL", "-t", "gap9-ne16", "--widths", "4,8", "--take", "0:2", "-j", 1),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_printed_controls_a_terminal(command: Command, name: str) -> None:
    status, out = command(*COMMANDS[name])
    assert status in (0, 1), out
    if "--json" in COMMANDS[name]:
        json.loads(out)


def test_json_keeps_the_names(command: Command) -> None:
    _, out = command("inspect", "MODEL", "--json")
    (graph,) = json.loads(out)["graphs"]
    assert [t["name"] for t in graph["tensors"]] == [hostile_name(t) for t in range(len(graph["tensors"]))]


def test_refusals(tmp_path: Path, capfd: pytest.CaptureFixture[str], command: Command) -> None:
    """An operator's name, a tensor that is not there, a file that is not: all are shown in one line."""
    custom = write_hostile(tmp_path / "here" / "custom", hostile_custom())
    for arguments in (
        ("run", custom),
        ("inspect", custom),
        ("convert", custom, "-t", "gap9-ne16", "-o", "out"),
        ("verify", custom),
        ("cut", "MODEL", "--from", hostile_name(7), "--to", hostile_name(14), "-o", "part.tflite"),
        ("explain", "MODEL", "--tensor", hostile_name(99).replace("\0", ""), "--index", "0"),
        ("run", Path("no") / FILE_NAME),
        ("run", "MODEL", "--set", "\x1b[31m\u202e=1"),
        ("--debug", "run", custom),
        ("\x1b[31m",),
    ):
        command(*(str(a).replace("\0", "") for a in arguments))


def test_reports(command: Command) -> None:
    """HTML, JUnit, node data of Model Explorer, frozen runs and archives."""
    command("compare", "MODEL", "@gap9-sq8", "-n", 2, "--report", "c.html", "--model-explorer", "c.json")
    command("verify", "MODEL", "-n", 1, "--junit", "v.xml")
    command("verify", "MODEL", "-n", 1, "--freeze", "frozen.tflq.json")
    command("verify", "MODEL", "--baseline", "frozen.tflq.json", "--junit", "b.xml")
    command("run", "MODEL", "-n", 1, "--all-tensors", "-o", "run.npz")
    command("compare", "MODEL", "run.npz", "-n", 1)
    for path in sorted(Path().iterdir()):
        if path.suffix != ".npz":
            assert_shown(path.read_text("utf-8"), path.name)
    page = Path("c.html").read_text("utf-8")
    assert "<b onload" not in page
    assert "\\x1b[31m" in page
    assert "{{7*7}}" in page
    for name in ("v.xml", "b.xml"):
        assert ElementTree.parse(name).getroot().find(".//testcase") is not None
    for name in ("c.json", "frozen.tflq.json"):
        json.loads(Path(name).read_text("utf-8"))
    with np.load("run.npz") as arrays:
        assert len(arrays.files) == len(set(arrays.files)) == 10


def test_models_keep_the_names(command: Command) -> None:
    """A .tflite is binary: names stay as they are."""
    assert command("dequantize", "MODEL", "-o", "float.tflite")[0] == 0
    assert command("cut", "MODEL", "--from", "14", "--to", "17", "-o", "part.tflite")[0] == 0
    names = {t.name for t in read_model("part.tflite").main.tensors}
    assert {hostile_name(t) for t in (14, 15, 16, 17)} <= names


def test_search(command: Command) -> None:
    status, _ = command(
        *("search", "MODEL", "-t", "gap9-ne16", "--min-sqnr", 5, "--widths", "4,8", "--take", "0:2", "-j", 1),
        *("-o", "found.json", "--points", "p.csv", "--results", "r.jsonl", "--report", "r.html"),
    )
    assert status in (0, 1)
    for path in Path().iterdir():
        assert_shown(path.read_text("utf-8").replace("\r\n", "\n"), path.name)


def test_conversions(command: Command) -> None:
    """Every target at once, and a template that comes back."""
    assert command("convert", "MODEL", "-t", "all", "-n", 1, "-o", "out", "--report", "all.html")[0] in (0, 1)
    assert command(
        *("convert", "MODEL", "-t", "gap9-sq8", "-n", 1, "-o", "one"),
        *("--write-template", "t.json", "--report", "one.html"),
    )[0] in (0, 1)
    assert command("convert", "MODEL", "-t", "gap9-sq8", "-n", 1, "-o", "two", "--template", "t.json")[0] in (0, 1)
    for name in ("all.html", "one.html", "t.json"):
        assert_shown(Path(name).read_text("utf-8"), name)
    assert sorted(p.name for p in Path().iterdir()) == ["all.html", "one", "one.html", "out", "t.json", "two"]


def test_bench_and_dumps(command: Command) -> None:
    """Labeled samples in files whose names are hostile, too."""
    rng = np.random.default_rng(0)
    data = Path("data") / FILE_NAME.replace(".tflite", "")
    data.mkdir(parents=True)
    name = FILE_NAME.replace(".tflite", ".bin").translate(dict.fromkeys(map(ord, "\n\u2028")))  # ends of lines
    (data / name).write_bytes(rng.integers(-128, 128, 64, np.int8).tobytes())
    (data / "y_labels.csv").write_text(f"{name},10,3\n", "utf-8")
    bench = ("bench", "--model", "MODEL", "--data", data)
    assert command(*bench, "-t", "gap9-sq8", "--report", "b.html", "--per-class")[0] == 0
    assert_shown(Path("b.html").read_text("utf-8"), "b.html")
    assert command("bench", "kws01", "--model", "MODEL", "--data", data)[0] == 2
    assert command("dumps", data / name, "--model", "MODEL")[0] in (0, 1)
