"""`tflq sensitivity` and `tflq search` as a user runs them, on the package's own model and images."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Outcome, tflq
from tests.support.data import data_path
from tests.support.digits_problem import write_labeled
from tests.support.html_page import read_page
from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path

MODEL = demo_model_path()
SMALL = ("--layer", "0:weight_bits=8", "--layer", "1:weight_bits=8", "--layer", "4:weight_bits=8", "--jobs", "1")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of labeled images, as the model's input lies in memory."""
    return write_labeled(tmp_path_factory.mktemp("digits"), 80)


def search(*arguments: object) -> Outcome:
    return tflq("search", MODEL, "--target", "gap9-ne16", *SMALL, *arguments)


def test_the_setting_that_is_found_converts(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    arguments = ("--data", digits, "--take", "0:40", "--verify", "40:80", "--at-least", "95", "--widths", "3,4,5")
    done = search(*arguments, "-o", path, "--points", tmp_path / "p.csv", "--json")
    assert (done.status, done.err) == (0, "")
    found = done.json
    assert found["chosen"]["accuracy_percent"] >= 95
    assert found["verified"]["samples"] == 40
    low, high = found["chosen"]["interval_percent"]
    assert low < 95 <= found["chosen"]["accuracy_percent"] <= high
    assert found["required_within_interval"]
    assert [pair["against"] for pair in found["paired"]][:1] == ["the widest"]
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + len(found["points"])
    converted = tflq("convert", MODEL, "--target", "gap9-ne16", "--settings", path, "-o", tmp_path / "out", "--json")
    assert (converted.status, converted.err) == (0, "")
    bits = {layer["name"]: layer["weight_bits"] for layer in converted.json["layers"]}
    names = [layer["name"] for layer in found["layers"]]
    assert [bits[name] for name in names] == found["chosen"]["bits"]
    assert (bits["CONV_2D_0_0"], bits["DEPTHWISE_CONV_2D_0_4"]) == (8, 8)


INTERRUPTED = ("--take", "0:20", "--at-least", "95", "--widths", "3,5,8", "--json")


@pytest.fixture(scope="module")
def whole(digits: Path) -> dict[str, Any]:
    """The report of a search that nothing interrupts."""
    found: dict[str, Any] = search("--data", digits, *INTERRUPTED).json
    return found


WAITING_SEARCH = """
import signal, sys, time
from tflq.cli import main
from tflq.precision.results_file import ResultsFile

signal.signal(signal.SIGINT, signal.default_int_handler)

def add(self, result, before=ResultsFile.add, kept=[]):
    before(self, result)
    kept.append(result)
    if len(kept) == 3:
        time.sleep(600)

ResultsFile.add = add
sys.exit(main(sys.argv[1:]))
"""
"""A search that waits behind its third result, so that the signal always comes before its end.

It takes SIGINT as a terminal's program does: what a shell runs in the background inherits that it is ignored.
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_an_interrupted_search_goes_on(
    digits: Path, tmp_path: Path, whole: dict[str, Any], number: int, status: int
) -> None:
    path, results = tmp_path / "s.json", tmp_path / "s.json.results"
    arguments = ("--data", digits, *INTERRUPTED, "-o", path)
    command = [sys.executable, "-c", WAITING_SEARCH, "search", MODEL, "-t", "gap9-ne16", *SMALL, *arguments]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(list(map(str, command)), env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 300
    while time.monotonic() < until and (not results.exists() or results.read_bytes().count(b"\n") < 3):
        time.sleep(0.01)
    running.send_signal(number)
    out, err = running.communicate()
    assert (running.returncode, out) == (status, b"")
    assert err == (b"tflq: interrupted\n" if status == 130 else b"")
    assert not path.exists()
    kept = results.read_bytes().count(b"\n")
    assert kept == 3
    with results.open("ab") as file:
        file.write(b'{"problem": "cut o')
    second = search(*arguments).json
    assert second["known"] == kept
    assert second["evaluated"] == whole["evaluated"] - kept
    assert without_counts(second) == without_counts(whole)
    third = search(*arguments, "--force").json
    assert (third["evaluated"], third["known"]) == (0, whole["evaluated"])


@pytest.mark.parametrize("seconds", [0.4, 1.5, 3.0, 4.0, 5.5])
def test_ctrl_c_ends_a_search_in_one_line(seconds: float) -> None:
    """A terminal sends SIGINT to the workers, too, at any time: while modules load, processes start, or trials run."""
    arguments = ("search", MODEL, "-t", "gap9-ne16", "--min-sqnr", "20", "-n", "4000", "--jobs", "2")
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    time.sleep(seconds)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, b"", b"tflq: interrupted\n")


INTERRUPTIBLE = """
import signal, sys
from tflq.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    print("begun", flush=True)
    sys.exit(main(sys.argv[1:]))
"""


def without_counts(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key not in ("evaluated", "known", "run")}


def test_the_best_found_is_reported(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    done = search("--data", digits, "--take", "20", "--min-sqnr", "150", "--widths", "4,8", "-o", path)
    assert (done.status, done.err) == (1, "")
    assert "no setting keeps an SQNR of at least 150 dB; the best found: " in done.out
    assert f"{path} was not written" in done.out
    assert not path.exists()


def test_a_setting_that_other_samples_do_not_confirm(digits: Path, tmp_path: Path) -> None:
    """The images of --verify have wrong labels."""
    lines = (digits / "y_labels.csv").read_text().splitlines()
    wrong = [f"{line[:-1]}{(int(line[-1]) + 1) % 10}" for line in lines[20:40]]
    for name in sorted(digits.glob("*.bin"))[:40]:
        (tmp_path / name.name).write_bytes(name.read_bytes())
    (tmp_path / "y_labels.csv").write_text("\n".join([*lines[:20], *wrong]) + "\n")
    page, path = tmp_path / "page.html", tmp_path / "s.json"
    arguments = ("--data", tmp_path, "--take", "20", "--verify", "20:40", "--at-least", "80", "--widths", "4,8")
    done = search(*arguments, "--report", page, "-o", path)
    assert (done.status, done.err) == (1, "")
    first, second, third = done.out[done.out.index("on the samples of --verify") :].splitlines()[:3]
    assert first.startswith("on the samples of --verify: 0.0 % (0 of 20)")
    assert first.endswith(": NOT kept")
    assert second.startswith("chosen: ")
    floating = "the float model on the same samples: 0.0 % (0 of 20), 95 % interval 0.0..16.1 %"
    assert third == f"{floating}, which does not keep an accuracy of at least 80 % either"
    verdict = done.out.splitlines()[0]
    assert verdict.startswith("FAIL: 0.0 % accuracy, reference accuracy of at least 80 %, 20 samples; ")
    assert read_page(page).verdict == verdict
    text = html.unescape(page.read_text("utf-8"))
    assert all(f"<p>{sentence}</p>" in text for sentence in (first, second, third))
    assert json.loads(path.read_text())["about"]["verified"] == first.removeprefix("on the samples of --verify: ")


def test_the_file_of_a_setting_without_verification_says_so(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    done = search("--data", digits, "--take", "20", "--at-least", "80", "--widths", "4,8", "-o", path)
    assert (done.status, done.err) == (0, "")
    assert "the float model on the same samples: 100.0 % (20 of 20), 95 % interval 83.9..100.0 %\n" in done.out
    assert (
        json.loads(path.read_text())["about"]["verified"] == "no: only the samples of the search confirm this setting"
    )


def test_without_labels() -> None:
    done = search("--min-sqnr", "15", "-n", "12", "--widths", "4,6,8", "--json")
    assert (done.status, done.err) == (0, "")
    assert done.json["chosen"]["right"] is None
    assert done.json["chosen"]["sqnr_db"] >= 15


def test_cycles_are_made_small(tmp_path: Path) -> None:
    arguments = ("--min-sqnr", "15", "-n", "12", "--widths", "4,8", "--objective", "cycles", "--force")
    report, text = search(*arguments, "--json"), search(*arguments, "--points", tmp_path / "p.csv")
    assert (report.status, report.json["objective"]) == (0, "cycles")
    cost = report.json["chosen"]["cost"]
    assert (cost["unit"], cost["grade"], cost["high"]) == ("cycles", "lower bound", None)
    assert "MAX_POOL_2D_0_3" in cost["basis"]
    assert f"chosen: >= {cost['value']:,.0f} cycles (lower bound), " in text.out
    heads, *rows = (tmp_path / "p.csv").read_text().splitlines()
    assert heads.startswith("size_bytes,cost.value,cost.unit,cost.grade,cost.low,cost.high,cost.basis,")
    assert [row.split(",")[2:4] for row in rows] == [["cycles", "lower bound"]] * len(report.json["points"])


def test_sensitivity_in_words_and_json(digits: Path) -> None:
    arguments = ("sensitivity", MODEL, "-t", "gap9-ne16", *SMALL, "--data", digits, "--take", "20", "--widths", "8,2")
    text, report = tflq(*arguments), tflq(*arguments, "--json").json
    assert (text.status, text.err) == (0, "")
    assert "each layer in turn narrowed, all other layers at the widest" in text.out
    assert [layer["name"] for layer in report["layers"]] == ["CONV_2D_0_2", "CONV_2D_0_5", "FULLY_CONNECTED_0_8"]
    for layer in report["layers"]:
        assert f"{layer['results']['2']['accuracy_percent']:.1f}" in text.out
    spared = tflq(*arguments, "--spared", "--float", "--json").json
    assert spared["float"]
    assert set(spared["without"]) == {"8", "2"}


@pytest.fixture(scope="module")
def settings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "s.json"
    path.write_text('{"tflq_settings": 1, "target": "gap9-ne16", "set": ["weight_bits=4"], "layers": []}')
    return path


def test_a_settings_file_is_for_its_target(settings_file: Path, tmp_path: Path) -> None:
    line = tflq("convert", MODEL, "-t", "aipu", "--settings", settings_file, "-o", tmp_path / "out").refused()
    assert "contains settings of target gap9-ne16, not of aipu; use --target gap9-ne16" in line
    assert "--set and --layer need a target" in tflq("run", MODEL, "--settings", settings_file).refused()


def test_set_and_layer_win_over_the_file(settings_file: Path, tmp_path: Path) -> None:
    arguments = ("convert", MODEL, "-t", "gap9-ne16", "--settings", settings_file, "-o", tmp_path / "out", "--json")
    layers = tflq(*arguments, "--set", "weight_bits=6", "--layer", "0:weight_bits=3").json["layers"]
    assert {layer["weight_bits"] for layer in layers if layer["weight_bits"]} == {3, 6}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the requirement is missing; add --at-least PERCENT, --min-sqnr DB, or both"),
        (("--at-least", "90"), "--at-least needs labels"),
        (("--min-sqnr", "nan"), "nan is not a number"),
        (("--min-sqnr", "9", "--scheduler", ""), "scheduler '': allowed is an address such as tcp://host:8786"),
        (("--min-sqnr", "9", "--scheduler", "tcp://127.0.0.1:9"), "does not answer: [Errno 111] Connection refused"),
        (("--min-sqnr", "9", "--take", "9:3"), "'9:3' is not a range; write START:STOP"),
        (("--min-sqnr", "9", "--take", "0:9", "--verify", "8:12"), "--verify 8:12 and --take 0:9 overlap"),
        (("--min-sqnr", "9", "--verify", "8:12"), "restrict the search with --take"),
        (("--min-sqnr", "9", "--widths", "4;6"), "'4;6' is not a list of bits"),
        (("--min-sqnr", "9", "--objective", "energy"), "energy is not offered: MAX_POOL_2D_0_3: max_pool_2d on"),
        (("--min-sqnr", "9", "--widths", "9"), "takes 8, 7, 6, 5, 4, 3, 2 bits, none of which"),
        (("--min-sqnr", "9", "-o", "missing/s.json"), "missing/s.json: cannot be written"),
        (("--min-sqnr", "9", "--data", "missing"), "missing: no such folder"),
        (("--min-sqnr", "9", "--data", "none=missing"), "no task is called 'none'"),
        (("--min-sqnr", "9", "--data", "a", "--input", "b"), "--data and --input both name samples"),
        (("--min-sqnr", "9", "--results", "/"), "/: cannot be read"),
    ],
)
def test_refused(arguments: tuple[str, ...], words: str) -> None:
    assert words in search(*arguments).refused()


def test_more_samples_than_there_are(digits: Path) -> None:
    line = search("--data", digits, "--take", "0:81", "--min-sqnr", "9").refused()
    assert "samples 0:81 were requested; there are 0:80" in line


def test_the_keywords_setting_that_the_docs_state(tmp_path: Path) -> None:
    """The setting of docs/guides/sensitivity.md, counted by `tflq bench` on all 1000 clips: 448 + 453."""
    model, clips = data_path("models", "kws_ref_model.tflite"), data_path("datasets", "kws01")
    page = (ROOT / "docs" / "guides" / "sensitivity.md").read_text(encoding="utf-8")
    path = tmp_path / "kws.json"
    path.write_text(page.split("```json\n")[1].split("```")[0])
    done = tflq("bench", "kws01", "--model", model, "--data", clips, "-t", "gap9-ne16", "--settings", path, "--json")
    assert done.json["rows"][1]["right"] == 901
    assert "448 of 500" in page
    assert "453 of 500" in page
