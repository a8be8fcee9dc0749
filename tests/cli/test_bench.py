"""`tflq bench`: accuracy as published, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.anomalies import write_anomalies
from tests.support.command import Outcome, tflq
from tests.support.data import data_path
from tests.support.ports import board_port
from tflq.converters.targets import target_names


def bench(folder: Path, *arguments: object) -> Outcome:
    model = data_path("models", "kws_ref_model.tflite")
    return tflq("bench", "kws01", "--model", model, "--data", folder, *arguments)


def test_the_keyword_clips_as_they_are() -> None:
    done = bench(data_path("datasets", "kws01"), "--json")
    (row,) = done.json["rows"]
    assert (done.status, row["right"], row["samples"]) == (0, 901, 1000)


def test_a_target_beside_the_model_as_it_is(tmp_path: Path) -> None:
    folder = data_path("datasets", "kws01")
    options = ("--take", 60, "-t", "gap9-ne16", "-s", "weight_bits=2")
    first, second = bench(folder, *options, "--json").json["rows"]
    assert first["paired"] is None
    found = second["paired"]
    assert found["against"] == "as is"
    assert second["right"] - first["right"] == found["gained"] - found["lost"]
    assert found["lost"] > 20
    assert not found["is_noise"]
    low, high = second["interval_percent"]
    assert low < second["accuracy_percent"] < high
    text = bench(folder, *options, "--report", tmp_path / "r.html")
    words = f"{found['gained']} gained, {found['lost']} lost, p = "
    assert words in text.out
    assert f"{low:.1f}..{high:.1f} %" in text.out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert words in page
    assert f"{low:.1f}..{high:.1f} %" in page


def test_at_least_is_a_check() -> None:
    folder = data_path("datasets", "kws01")
    done = bench(folder, "--take", 20, "--at-least", "90")
    assert (done.status, done.out.startswith("OK: 90.0 % accuracy (18 of 20) as is,")) == (0, True)
    failed = bench(folder, "--take", 20, "--at-least", "90.1")
    assert (failed.status, failed.err) == (1, "")


def clips(folder: Path, lines: str, *names: str, size: int = 490) -> Path:
    (folder / "y_labels.csv").write_text(lines)
    for name in names:
        (folder / name).write_bytes(bytes(size))
    return folder


def test_missing_files_are_listed(tmp_path: Path) -> None:
    lines = "".join(f"{i}.bin,12,0\n" for i in range(9))
    line = bench(clips(tmp_path, lines, "0.bin", "2.bin")).refused()
    assert "7 of 9 files are missing: 1.bin, 3.bin, 4.bin and 4 more" in line


@pytest.mark.parametrize(
    ("lines", "size", "words"),
    [
        ("a.bin,12,0\n", 489, "a.bin: has 489 bytes; a sample has 490 (int8 49x10x1)"),
        ("a.bin,12,0\n", 0, "a.bin: the file is empty"),
        ("a.bin,10,0\n", 490, "has 10 classes, the model's output has 12 elements"),
        ("a.bin,12,12\n", 490, "class 12 of 12"),
        ("a.bin\n", 490, "allowed is file,classes,class"),
    ],
)
def test_refused(tmp_path: Path, lines: str, size: int, words: str) -> None:
    assert words in bench(clips(tmp_path, lines, "a.bin", size=size)).refused()


def test_no_folder(tmp_path: Path) -> None:
    assert "no such folder" in bench(tmp_path / "none").refused()
    assert "does not contain y_labels.csv" in bench(tmp_path).refused()


def test_every_target_in_one_table() -> None:
    folder = data_path("datasets", "kws01")
    done = bench(folder, "--target", "all", "--take", 20)
    named = [line.split("  ")[0] for line in done.out.splitlines()]
    assert [name for name in named if name in ("as is", *target_names())] == ["as is", *target_names()]


def test_a_target_that_refuses_is_a_line_of_its_own(tmp_path: Path) -> None:
    """GAP9 needs ranges, which a float model does not have."""
    model = data_path("models", "kws_ref_model_float32.tflite")
    arguments = ("bench", "kws01", "--model", model, "--data", data_path("datasets", "kws01"), "--take", 5)
    rows = {row["name"]: row for row in tflq(*arguments, "--target", "all", "--json").json["rows"]}
    assert (rows["as is"]["samples"], len(rows["as is"]["classes"])) == (5, 12)
    assert {key for key, value in rows["gap9-ne16"].items() if value} == {"name", "refused"}
    assert "tensors have no range" in rows["gap9-ne16"]["refused"]
    assert "tensors have no range" in tflq(*arguments, "--target", "gap9-ne16").refused()
    done = tflq(*arguments, "--target", "all", "--metric", "top-2")
    assert (done.status, done.err, "top-2" in done.out) == (0, "", True)


def test_anomalies(tmp_path: Path) -> None:
    model = data_path("models", "ad01_int8.tflite")
    arguments = ("bench", "ad01", "--model", model, "--data", write_anomalies(tmp_path))
    (row,) = tflq(*arguments, "--json").json["rows"]
    assert (row["normal"], row["anomalies"], row["windows"], len(row["errors"])) == (6, 6, 144, 12)
    assert row["auc"] == 28 / 36
    below = tflq(*arguments, "--at-least", "0.85")
    assert (below.status, "missed" in below.out) == (1, True)
    assert "--at-least 85: AUC is 0..1" in tflq(*arguments, "--at-least", "85").refused()
    (without_task,) = tflq("bench", *arguments[2:], "--json").json["rows"]
    assert without_task == row


def test_a_folder_with_labels(tmp_path: Path) -> None:
    model = data_path("models", "kws_ref_model.tflite")
    done = tflq("bench", "--model", model, "--data", data_path("datasets", "kws01"), "--take", 20, "--per-class")
    assert done.out.startswith("90.0 % accuracy (18 of 20) as is, 20 samples\n")
    assert "MLPerf" not in done.out
    assert len([line for line in done.out.splitlines() if re.fullmatch(r" *\d+ +\d+ +\d+\.\d %", line)]) == 12


def test_performance_says_that_it_simulates(tmp_path: Path) -> None:
    folder = data_path("datasets", "kws01")
    options = ("--mode", "performance", "--seconds", "0.01", "--take", "0:5")
    report = bench(folder, *options, "--json").json
    (row,) = report["rows"]
    assert report["source"].startswith("simulation on this computer")
    assert (len(row["inputs"]), row["conforms"]) == (5, False)
    assert all(window["seconds"] >= 0.01 for window in row["inputs"])
    done = bench(folder, *options, "--results", tmp_path)
    assert "simulation on this computer" in done.out
    assert re.search(r"not conforming: an input ran for [\d.]+ s; the rules require 10 s or more", done.out)
    assert done.err == f"tflq: written: {tmp_path}/results/tflq-as-is/kws/performance\n"
    assert (tmp_path / "results" / "tflq-as-is" / "kws" / "performance" / "results.json").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seconds", "1"), "--seconds needs --mode performance"),
        (("--mode", "performance", "--at-least", "1"), "--at-least needs --mode accuracy"),
        (("--target", "all", "--target", "gap9-ne16"), "--target all includes every target"),
        (("--target", "all", "--set", "weight_bits=4"), "--set and --layer need a single target"),
        (("--baud", "9600"), "--baud and --timeout need a board; add --port"),
        (("--port", "x", "--at-least", "1"), "--at-least bounds the score of a model; omit it with --port"),
        (("--port", "/dev/null/none"), "/dev/null/none: cannot be opened"),
        (("--port", "x", "--target", "gap9-ne16", "--target", "gap9-sq8"), "--port compares with one arithmetic"),
        (("--mode", "performance", "--take", "0:4"), "performance is measured on 5 inputs"),
    ],
)
def test_contradictions(options: tuple[str, ...], words: str) -> None:
    if "--port" in options:
        pytest.importorskip("serial")
    assert words in bench(data_path("datasets", "kws01"), "--take", 5, *options).refused()


def test_no_task_for_what_needs_one(tmp_path: Path) -> None:
    model, folder = data_path("models", "kws_ref_model.tflite"), data_path("datasets", "kws01")
    arguments = ("bench", "--model", model, "--data", folder, "--take", 2)
    assert "--results needs TASK" in tflq(*arguments, "--results", tmp_path).refused()
    assert "--port needs TASK" in tflq(*arguments, "--port", "x").refused()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "no reply to 'name%' within 0.3 s"),
        (b"Guru Meditation\r\n", "the reply to 'name%' is 'Guru Meditation', expected m-name-dut-[...]"),
        (b"m-name-dut-[b]\r\nm-model-[ic01]\r\nm-ready\r\n", "the board 'b' runs ic01, TASK is kws01"),
    ],
)
def test_boards_that_do_not_speak_the_protocol(answer: bytes, words: str) -> None:
    pytest.importorskip("serial")
    with board_port(lambda _: answer) as port:
        done = bench(data_path("datasets", "kws01"), "--take", 5, "--port", port, "--timeout", "0.3")
    assert f"tflq: {port}: " in done.refused()
    assert words in done.err
