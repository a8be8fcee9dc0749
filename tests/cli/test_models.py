"""`tflq models`."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import tflq
from tests.support.data import data_path

NO_COPIES = {"TFLQ_DATA": "", "no_proxy": "*", "NO_PROXY": "*"}


def test_list() -> None:
    assert "kws_ref_model.tflite" in tflq("models", "list").out
    report = tflq("models", "list", "--json").json
    assert len(report["models"]) == 11
    assert report["commit"].startswith("1afd2c98")


def test_fetch_copies(tmp_path: Path) -> None:
    data_path("models")
    done = tflq("models", "fetch", "kws_ref_model", "vww_96_int8", "--dir", tmp_path / "m")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("OK: 2 models in ")
    assert "reference the pinned checksums\n" in done.out
    assert sum(line.split()[1:2] == ["copied"] for line in done.out.splitlines()) == 2
    again = tflq("models", "fetch", "kws_ref_model", "--dir", tmp_path / "m", "--json", environment=NO_COPIES)
    assert again.json["models"][0]["outcome"] == "already there"


def test_no_network(tmp_path: Path) -> None:
    arguments = ("models", "fetch", "kws_ref_model", "--dir", tmp_path, "--base-url", "http://127.0.0.1:9")
    assert "cannot be downloaded" in tflq(*arguments, environment=NO_COPIES).refused()
    assert list(tmp_path.iterdir()) == []


def test_wrong_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "kws_ref_model.tflite").write_bytes(b"mine")
    assert "move it away" in tflq("models", "fetch", "kws_ref_model", "--dir", tmp_path).refused()


def test_unknown_name(tmp_path: Path) -> None:
    assert "no reference model is called 'kws'" in tflq("models", "fetch", "kws", "--dir", tmp_path).refused()
    assert "frobnicate" in tflq("models", "frobnicate").refused()
