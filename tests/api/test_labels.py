"""Labels as arrays, (x, y), and as files: the same as a folder with y_labels.csv."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.faults import DIGITS
from tflq.errors import InputError, UsageError

ARCHIVE = np.load(DIGITS.parent / "digits_test.npz")
X, Y = ARCHIVE["images"][:30].reshape(30, 1, 8, 8, 1), ARCHIVE["labels"][:30]
NE16 = tflq.TargetOptions("gap9-ne16", layers=("0:weight_bits=8", "1:weight_bits=8", "4:weight_bits=8"))
FLAGS = ("-t", "gap9-ne16", *(word for rule in NE16.layers for word in ("-l", rule)), "--widths", "3,8", "-j", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels")
    np.save(path / "x.npy", X)
    np.save(path / "y.npy", Y)
    (path / "y.csv").write_text("".join(f"{n:02}.bin,10,{c}\n" for n, c in enumerate(Y)))
    (path / "digits").mkdir()
    (path / "digits" / "y_labels.csv").write_bytes((path / "y.csv").read_bytes())
    for n, image in enumerate(X):
        image.tofile(path / "digits" / f"{n:02}.bin")
    return path


def test_bench(folder: Path) -> None:
    wanted = tflq.bench(DIGITS, folder / "digits", targets=("gap9-ne16",)).rows()
    assert tflq.bench(DIGITS, (X, Y), targets=("gap9-ne16",)).rows() == wanted
    assert tflq.bench(DIGITS, folder / "x.npy", labels=list(Y), targets=("gap9-ne16",)).rows() == wanted
    for labels in ("y.npy", "y.csv"):
        flags = ("-d", "x.npy", "--labels", labels, "-t", "gap9-ne16", "--json")
        assert command("bench", "-m", DIGITS, *flags, cwd=folder).json["rows"] == json.loads(json.dumps(wanted))


def test_sensitivity_search_and_recover(folder: Path) -> None:
    rows = tflq.sensitivity(DIGITS, NE16, data=str(folder / "digits"), widths=(3, 8)).rows()
    assert tflq.sensitivity(DIGITS, NE16, (X, Y), widths=(3, 8)).rows() == rows
    points = tflq.search(DIGITS, NE16, data=str(folder / "digits"), widths=(3, 8), at_least=80.0).rows()
    assert tflq.search(DIGITS, NE16, (X, Y), widths=(3, 8), at_least=80.0).rows() == points
    flags = ("-i", "x.npy", "--labels", "y.csv", "--at-least", 80, "--json")
    assert command("search", DIGITS, *FLAGS, *flags, cwd=folder).json["points"] == json.loads(json.dumps(points))
    options = tflq.BackwardOptions(drop=5.0)
    tried = tflq.search(DIGITS, "aipu", options=options, data=str(folder / "digits")).rows()
    assert tflq.search(DIGITS, "aipu", (X, Y), options=options).rows() == tried
    three = tflq.TargetOptions("gap9-ne16", ("weight_bits=3",))
    outcomes = tflq.recover(DIGITS, three, data=str(folder / "digits"), rows=16).outcomes
    assert tflq.recover(DIGITS, three, (X, Y), rows=16).outcomes == outcomes
    assert outcomes[0].accuracy_percent is not None


def test_open_samples_has_one_type_for_every_source(folder: Path) -> None:
    arrays = tflq.open_samples(DIGITS, (X, Y))
    named = tflq.open_samples(DIGITS, str(folder / "x.npy"), labels=str(folder / "y.npy"))
    data = tflq.open_samples(DIGITS, data=str(folder / "digits"))
    for opened in (arrays, named, data):
        assert np.array_equal(opened.samples.take(0, 30)[0].reshape(X.shape), X)
        assert np.array_equal(opened.labels, Y)
    assert tflq.open_samples(DIGITS, X).labels is None
    assert tflq.open_samples(DIGITS, count=7).samples.count == 7


def test_labels_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"labels: int64\[29\]; classes must be integers \[30\]"):
        tflq.open_samples(DIGITS, (X, Y[:29].astype(np.int64)))
    with pytest.raises(InputError, match=r"classes 0\.\.10; the model's output has 10 elements"):
        tflq.open_samples(DIGITS, (X, np.arange(30) % 11))
    with pytest.raises(UsageError, match="labels are given again"):
        tflq.search(DIGITS, NE16, (X, Y), labels=list(Y), at_least=80.0)
    with pytest.raises(InputError, match="samples are a tuple"):
        tflq.run(DIGITS, (X, X, X))
    (tmp_path / "y.csv").write_text("class\n" + "1\n" * 30)
    with pytest.raises(InputError, match=r"y\.csv: row 1: 'class' is not a class, 0 or more\. Remove the header row"):
        tflq.open_samples(DIGITS, X, labels=str(tmp_path / "y.csv"))
    line = command("sensitivity", DIGITS, *FLAGS, "--labels", "y.npy", cwd=folder).refused()
    assert "--labels needs samples; name them with --input" in line
    line = command("bench", "-m", DIGITS, "-d", "digits", "--labels", "y.npy", "--take", 40, cwd=folder).refused()
    assert "samples 0:40 were requested; there are 0:30" in line


def test_errors_in_python_name_parameters() -> None:
    with pytest.raises(UsageError) as refused:
        tflq.search(DIGITS, NE16, at_least=80.0)
    assert str(refused.value) == "at_least needs labels; name them with data or labels, or use min_sqnr"
    line = command("search", DIGITS, *FLAGS, "--at-least", 80).refused()
    assert "--at-least needs labels; name them with --data or --labels, or use --min-sqnr" in line
    with pytest.raises(UsageError) as refused:
        tflq.run(DIGITS, tflq.SampleOptions(X, count=3))
    assert str(refused.value).startswith("count is the number of random samples; select from named ones with take")
    with pytest.raises(UsageError, match="SearchOptions has no field 'at_leest'; did you mean at_least"):
        tflq.search(DIGITS, NE16, (X, Y), at_leest=80.0)
