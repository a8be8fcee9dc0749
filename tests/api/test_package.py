"""The package as a library: its names, its results, its errors and warnings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.diagnosis.model_difference import Finding
from tflq.errors import InputError, TflqWarning, UsageError
from tflq.interpreter import kernel_files

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def test_public_names_are_listed_and_there() -> None:
    assert {"Engine", "calibrate", "diff", "read_model", "samples"} <= set(dir(tflq))
    for name in dir(tflq):
        assert getattr(tflq, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        tflq.nonsense  # noqa: B018 - it is what is tested


def test_python_m_tflq_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "tflq", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"tflq {tflq.__version__}\n"


def test_result_is_what_json_prints(tmp_path: Path) -> None:
    other = tmp_path / "float.tflite"
    assert command("dequantize", DIGITS, "-o", other).status == 0
    found = tflq.diff(str(DIGITS), str(other))
    assert not found.is_equal
    assert (
        json.dumps(found.to_dict(), indent=2, ensure_ascii=False) == command("diff", DIGITS, other, "--json").out[:-1]
    )


def test_to_pandas_takes_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    finding = Finding("constant", "tensor 3", "3 of 4 differ")
    rows = tflq.DiffResult("a", "b", (finding,)).to_pandas()
    assert rows == [
        {"kind": "constant", "where": "tensor 3", "words": "3 of 4 differ", "channel": None, "differing": None}
    ]


def test_to_pandas_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tflq.TflqError, match=r"pip install 'tflq\[pandas\]'"):
        tflq.diff(DIGITS, DIGITS).to_pandas()


def test_a_model_is_told_by_its_content(tmp_path: Path) -> None:
    renamed = tmp_path / "model.txt"
    renamed.write_bytes(DIGITS.read_bytes())
    assert tflq.diff(renamed, DIGITS).is_equal
    model = tflq.read_model(DIGITS)
    assert tflq.read_model(model) is model


def test_samples_of_every_kind(tmp_path: Path) -> None:
    model = tflq.read_model(DIGITS)
    name = model.main.tensors[model.main.inputs[0]].name
    images = np.arange(3 * 64, dtype=np.int16).astype(np.int8).reshape(3, 8, 8, 1)
    np.save(tmp_path / "x.npy", images)
    for source in (images, {name: images}, str(tmp_path / "x.npy"), tflq.SampleOptions(images)):
        found = tflq.samples(model, source)
        assert found.count == 3
        np.testing.assert_array_equal(found.take(1, 3)[0], images[1:, None])
    assert tflq.samples(model, found) is found
    assert tflq.samples(model, count=7).count == 7


def test_samples_refused() -> None:
    with pytest.raises(InputError, match="no input is called 'nope'"):
        tflq.samples(DIGITS, {"nope": np.zeros((1, 8, 8, 1), np.int8)})


def test_clipped_samples_are_a_warning() -> None:
    far = np.full((2, 8, 8, 1), 1e6)
    with pytest.warns(TflqWarning, match="128 input values are outside the range of their input and were clipped"):
        tflq.samples(DIGITS, tflq.SampleOptions(far, real=True))


def test_calibrate_gives_ranges(tmp_path: Path) -> None:
    assert command("dequantize", DIGITS, "-o", tmp_path / "float.tflite").status == 0
    images = np.linspace(-1, 1, 5 * 64, dtype=np.float32).reshape(5, 8, 8, 1)
    ranged = tflq.calibrate(tmp_path / "float.tflite", samples=images, strategy="mean", batch_size=2)
    found = ranged.main.tensors[ranged.main.inputs[0]].range
    assert found is not None
    assert found.maximum.max() <= 1
    with pytest.raises(UsageError, match="need samples; add calibration FILE"):
        tflq.calibrate(ranged, bins=64)
    with pytest.raises(UsageError, match="has no field 'color'"):
        tflq.calibrate(ranged, color=1)


def test_kernels_are_loaded_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_files, "_loaded", {})
    (tmp_path / "kernels.py").write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\n")
    tflq.load_kernels(tmp_path / "kernels.py")
    assert (tmp_path / "ran").exists()
    with pytest.raises(tflq.TflqError, match=r"missing\.py"):
        tflq.load_kernels(tmp_path / "missing.py")


def test_no_public_name_is_a_submodule() -> None:
    folder = Path(tflq.__file__).parent
    submodules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert not submodules & set(dir(tflq))


def test_a_notebook_shows_what_report_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tflq.compare(str(DIGITS), "@gap9-ne16", tflq.SampleOptions(count=3))
    found.write_report(tmp_path / "page.html")
    assert found._repr_html_() == (tmp_path / "page.html").read_text(encoding="utf-8")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert found._repr_html_() is None
