"""A page says what was run: two runs with other settings, files or limits never look alike."""

from __future__ import annotations

import hashlib
import html
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.faults import DIGITS
from tests.support.html_page import too_wide
from tflq import __version__, limits

pytest.importorskip("jinja2", reason="jinja2 is not installed: it comes with tflq[report]")


def told(found: object) -> str:
    """Return what a result's page says of the run, but for the date."""
    page = found._repr_html_() or ""  # type: ignore[attr-defined]
    assert page.count("<h2>What was run</h2>") == 1
    part = page[page.index("<h2>What was run</h2>") :]
    return re.sub(r"<dt>date</dt><dd>[^<]*</dd>", "", part)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs")
    images = np.load(DIGITS.parent / "digits_test.npz")["images"].reshape(-1, 1, 8, 8, 1)
    np.save(path / "a.npy", images[:4])
    np.save(path / "b.npy", images[4:8])
    shutil.copy(DIGITS, path / "m.tflite")
    bits = '{"tflq_settings": 1, "target": "gap9-ne16", "set": [], "layers": ["0:weight_bits=%d"], "about": {}}'
    (path / "three.json").write_text(bits % 3)
    (path / "four.json").write_text(bits % 4)
    (path / "ranges.csv").write_text("")
    return path


Change = Callable[[Path], dict[str, object]]
CHANGES: dict[str, Change] = {
    "nothing": lambda _: {},
    "samples": lambda f: {"samples": str(f / "b.npy")},
    "an array": lambda f: {"samples": np.load(f / "b.npy")},
    "random samples": lambda _: {"samples": tflq.SampleOptions(count=4)},
    "another seed": lambda _: {"samples": tflq.SampleOptions(count=4, seed=1)},
    "the reference": lambda _: {"second": "@gap9-sq8"},
    "a setting": lambda _: {"target": tflq.TargetOptions(settings=("weight_bits=4",))},
    "its value": lambda _: {"target": tflq.TargetOptions(settings=("weight_bits=5",))},
    "a layer": lambda _: {"target": tflq.TargetOptions(layers=("0:weight_bits=4",))},
    "a file of settings": lambda f: {"target": tflq.TargetOptions(file=str(f / "three.json"))},
    "another one": lambda f: {"target": tflq.TargetOptions(file=str(f / "four.json"))},
    "calibration": lambda f: {"calibration": tflq.CalibrationOptions(samples=str(f / "a.npy"))},
    "its samples": lambda f: {"calibration": tflq.CalibrationOptions(samples=str(f / "b.npy"))},
    "its strategy": lambda f: {"calibration": tflq.CalibrationOptions(samples=str(f / "a.npy"), strategy="mean")},
    "isolated": lambda _: {"isolated": True},
    "tolerance": lambda _: {"tolerance": 1.0},
}


@pytest.fixture(scope="module")
def stories(folder: Path) -> dict[str, str]:
    """What the page of each run says, by what was changed."""
    found = {}
    for name, change in CHANGES.items():
        arguments = {"samples": str(folder / "a.npy"), **change(folder)}
        found[name] = told(tflq.compare(f"{folder / 'm.tflite'}@gap9-ne16", **arguments))  # type: ignore[arg-type]
    return found


def test_no_two_runs_look_alike(stories: dict[str, str]) -> None:
    assert len(set(stories.values())) == len(stories)


def test_the_settings_of_a_file_are_listed(stories: dict[str, str]) -> None:
    assert "0:weight_bits=3" in stories["a file of settings"]
    assert "0:weight_bits=4" in stories["another one"]


def test_a_run_twice_looks_alike(folder: Path, stories: dict[str, str]) -> None:
    again = tflq.compare(f"{folder / 'm.tflite'}@gap9-ne16", samples=str(folder / "a.npy"))
    assert told(again) == stories["nothing"]


def test_limits_in_force_are_told(folder: Path, stories: dict[str, str]) -> None:
    with limits.apply_limits(limits.Limits(max_depth=63)):
        found = tflq.compare(f"{folder / 'm.tflite'}@gap9-ne16", samples=str(folder / "a.npy"))
    assert "<dt>limit max_depth</dt><dd>63 (default: 64)</dd>" in told(found)


def test_a_model_that_was_written_again_is_not_taken_for_the_one_that_ran(tmp_path: Path) -> None:
    shutil.copy(DIGITS, tmp_path / "m.tflite")
    found = tflq.compare(str(tmp_path / "m.tflite"), "@gap9-ne16", tflq.SampleOptions(count=2))
    assert "written again" not in told(found)
    (tmp_path / "m.tflite").write_bytes(b"another")
    assert "written again between the run and this page" in told(found)
    (tmp_path / "m.tflite").unlink()
    assert "gone when this page was written" in told(found)


@pytest.mark.parametrize(
    "use_case", ["bench", "compare", "convert", "convert_all", "estimate", "search", "sensitivity"]
)
def test_every_use_case_with_a_page_is_recorded(use_case: str) -> None:
    assert hasattr(getattr(tflq, use_case), "__wrapped__")


def test_the_command_line_and_the_files_stand_on_the_page(folder: Path) -> None:
    given = ("compare", "m.tflite@gap9-ne16", "-i", "a.npy", "-s", "weight_bits=4", "--report", "out.html", "--force")
    done = command(*given, cwd=folder, environment={"SOURCE_DATE_EPOCH": "1700000000"})
    assert done.status == 1
    page = html.unescape((folder / "out.html").read_text("utf-8"))
    assert "tflq compare m.tflite@gap9-ne16 -i a.npy -s weight_bits=4 --report out.html --force" in page
    for name in ("m.tflite", "a.npy"):
        assert f"{name}: " in page
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in page
    assert f"<dt>tflq</dt><dd>{__version__}</dd>" in page
    assert "2023-11-14T22:13:20+00:00" in page
    assert "<dt>target settings</dt><dd>weight_bits=4 (default: none)</dd>" in page
    assert too_wide(folder / "out.html") == []
