"""Every result's `to_dict` is what --json of its command prints, byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.tracked import ROOT
from tflq.api.result import Result
from tflq.cli import main

DIGITS = str(ROOT / "tflq" / "data" / "digits.tflite")
TEN = tflq.SampleOptions(count=10, seed=3)

CASES: dict[str, tuple[Callable[[], Result], tuple[str, ...]]] = {
    "cut": (
        lambda: tflq.cut(DIGITS, outputs=["15"], output="a.tflite"),
        ("cut", DIGITS, "--to", "15", "-o", "a.tflite"),
    ),
    "dequantize": (lambda: tflq.dequantize(DIGITS, "f.tflite"), ("dequantize", DIGITS, "-o", "f.tflite")),
    "diff": (lambda: tflq.diff(DIGITS, DIGITS), ("diff", DIGITS, DIGITS)),
    "explain": (
        lambda: tflq.explain(DIGITS, "22", (0, 3), TEN, sample=4, against="@gap9-ne16"),
        tuple(f"explain {DIGITS} --tensor 22 --index 0,3 -n 10 --seed 3 --sample 4 --against @gap9-ne16".split()),
    ),
    "export": (
        lambda: tflq.export(DIGITS, "v", TEN, vectors="hex", target="gap9-ne16", layers=("CONV_2D",)),
        tuple(f"export {DIGITS} -o v -n 10 --seed 3 --vectors hex -t gap9-ne16 -l CONV_2D".split()),
    ),
    "inspect": (lambda: tflq.inspect(DIGITS), ("inspect", DIGITS)),
    "models": (tflq.models, ("models", "list")),
    "data": (tflq.data_sets, ("data", "list")),
    "recover": (
        lambda: tflq.recover(
            DIGITS, tflq.TargetOptions("gap9-ne16", ("weight_bits=3",)), random=True, span=tflq.Span(0, 20), output="r"
        ),
        tuple(f"recover {DIGITS} -t gap9-ne16 -s weight_bits=3 --random -n 20 -o r".split()),
    ),
    "run": (
        lambda: tflq.run(DIGITS, TEN, all_tensors=True, threads=2, output="o.npz"),
        ("run", DIGITS, "-n", "10", "--seed", "3", "--all-tensors", "-o", "o.npz"),
    ),
    "run for a target": (
        lambda: tflq.run(DIGITS, TEN, target=tflq.TargetOptions("gap9-ne16", ("weight_bits=4",))),
        ("run", DIGITS, "-n", "10", "--seed", "3", "-t", "gap9-ne16", "-s", "weight_bits=4"),
    ),
    "verify": (lambda: tflq.verify(DIGITS, TEN), ("verify", DIGITS, "-n", "10", "--seed", "3")),
    "freeze": (
        lambda: tflq.freeze(DIGITS, "b.tflq.json", TEN, target="gap9-ne16"),
        ("verify", DIGITS, "-n", "10", "--seed", "3", "-t", "gap9-ne16", "--freeze", "b.tflq.json"),
    ),
    "targets": (tflq.targets, ("targets",)),
    "runtimes": (tflq.runtimes, ("runtimes",)),
    "convert_all": (
        lambda: tflq.convert_all(DIGITS, "out", samples=TEN),
        tuple(f"convert {DIGITS} -t all -o out -n 10 --seed 3".split()),
    ),
    "dumps": (
        lambda: tflq.dumps(tflq.run(DIGITS, TEN, all_tensors=True, output="d.npz").output or "", DIGITS),
        ("dumps", "d.npz", "--model", DIGITS),
    ),
    "verify_baseline": (
        lambda: tflq.verify_baseline(tflq.freeze(DIGITS, "b.tflq.json", TEN).path),
        ("verify", "--baseline", "b.tflq.json"),
    ),
    "prove": (
        lambda: tflq.prove(DIGITS, "ref", "xnnpack"),
        ("compare", f"{DIGITS}@ref", "@xnnpack", "--prove"),
    ),
    "compare_runtimes": (
        lambda: tflq.compare_runtimes(DIGITS, ("ref", "xnnpack", "tflm"), TEN),
        ("compare", f"{DIGITS}@ref", "@xnnpack", "@tflm", "-n", "10", "--seed", "3"),
    ),
    "estimate": (lambda: tflq.estimate(DIGITS, "gap9-ne16"), ("estimate", DIGITS, "-t", "gap9-ne16")),
}

ELSEWHERE = {
    "bench": "tests/api/test_bench.py::test_result_is_what_json_prints",
    "compare": "tests/api/test_compare.py::test_result_is_what_json_prints",
    "convert": "tests/api/test_convert.py::test_result_and_files_are_those_of_the_command",
    "demo": "tests/cli/test_demo.py::test_json",
    "dut": "tests/cli/test_dut.py::test_the_board_is_what_the_interpreter_computes",
    "search": "tests/api/test_search.py::test_search_is_what_the_command_prints_and_writes",
    "sensitivity": "tests/api/test_search.py::test_sensitivity_is_what_the_command_prints",
}
"""Functions with their own test against the command of their name."""
NO_COMMAND = {"calibrate", "load_kernels", "open_samples", "read_model", "samples"}
"""Functions that prepare what others take; tests/api/test_package.py."""
NETWORK = {"build_data", "fetch_data", "fetch_models"}
"""Functions that fetch files; tests/benchmarks/test_fetch.py and tests/cli/test_data_sets.py."""


def test_every_function_is_held_to_its_command() -> None:
    functions = {
        name for name in tflq.__all__ if getattr(getattr(tflq, name), "__module__", "").startswith("tflq.api.")
    }
    functions = {name for name in functions if isfunction(getattr(tflq, name))} | {"load_kernels"}
    calls = {name for call, _ in CASES.values() for name in (call.__name__, *call.__code__.co_names)}
    assert functions - calls == {*ELSEWHERE, *NO_COMMAND, *NETWORK}
    for node_id in ELSEWHERE.values():
        path, _, name = node_id.partition("::")
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), node_id


@pytest.mark.parametrize("name", CASES)
def test_to_dict_is_what_json_prints(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call, arguments = CASES[name]
    monkeypatch.chdir(tmp_path)
    found = call().to_dict()
    run = found.pop("run", None)
    forced = ["--force"] if {"-o", "--freeze"} & {*arguments} and any(tmp_path.iterdir()) else []  # the call wrote it
    main([*arguments, *forced, "--json"])
    printed = capsys.readouterr().out
    said = json.loads(printed)
    assert (run is None) == (said.pop("run", None) is None)
    assert json.dumps(found) == json.dumps(said)
    assert printed == json.dumps(json.loads(printed), indent=2, ensure_ascii=False) + "\n"


def test_frozen_and_checked(tmp_path: Path) -> None:
    images = np.zeros((3, 8, 8, 1), np.int8)
    np.save(tmp_path / "x.npy", images)
    path = tmp_path / "run.tflq.json"
    frozen = tflq.freeze(DIGITS, path, tflq.SampleOptions(str(tmp_path / "x.npy")))
    assert (frozen.samples, set(frozen.baseline.files)) == (3, set(json.loads(path.read_text())["files"]))
    assert tflq.verify_baseline(path).is_equal
    images[1, 2, 3] = 100
    np.save(tmp_path / "x.npy", images)
    found = tflq.verify_baseline(path)
    assert found.to_dict()["files"] == ["x.npy: the file has changed since"]
    assert "1 of 3 samples differ, the first is number 1" in found.changes[0].what
    with pytest.raises(tflq.TflqError, match="Write the arrays to a file and pass its path"):
        tflq.freeze(DIGITS, path, tflq.SampleOptions(images))


def test_numbers_that_json_lacks_are_words() -> None:
    found = tflq.RunResult("float", 1, {"x": np.array([-np.inf, np.nan], np.float32)}, None).to_dict()
    (tensor,) = found["tensors"]
    assert (tensor["smallest"], tensor["largest"]) == ("nan", "nan")


def test_a_model_in_memory_is_named_by_its_source() -> None:
    found = tflq.inspect(tflq.read_model(DIGITS)).to_dict()
    assert (found["model"], found["size_bytes"]) == (DIGITS, None)
    assert tflq.cut(DIGITS).to_dict()["output"] is None


def test_what_was_run_is_in_the_report(tmp_path: Path) -> None:
    found = tflq.compare(f"{DIGITS}@gap9-ne16", samples=TEN, target=tflq.TargetOptions(settings=("weight_bits=4",)))
    run = found.to_dict()["run"]
    assert isinstance(run, dict)
    assert list(run) == ["command", "tflq", "date", "files", "settings", "environment"]
    assert run["tflq"] == tflq.__version__
    (file,) = (f for f in run["files"] if f["use"] != "kernels")  # those that another test loaded stay in the process
    assert file["sha256"] == hashlib.sha256(Path(DIGITS).read_bytes()).hexdigest()
    assert {"name": "target settings", "value": "weight_bits=4", "default": "none"} in run["settings"]
