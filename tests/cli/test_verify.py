"""`tflq verify` in words, JSON and status."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.draw import affine, with_constants
from tests.support.tracked import ROOT
from tflq.converters.tflite import model_to_bytes
from tflq.graph import DType
from tflq.oracle import Oracle
from tflq.oracle.package import is_installed

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
pytestmark = pytest.mark.usefixtures("oracle")

MODELS = (
    "ad01_int8",
    "kws_ref_model",
    "pretrainedResnet_quant",
    "pretrainedResnet_large_int8",
    "str_ww_ref_model",
    "vww_96_int8",
)


@pytest.mark.parametrize("name", MODELS)
def test_reference_models_on_100_random_samples(name: str, oracle: Oracle) -> None:
    report = tflq("verify", data_path("models", f"{name}.tflite"), "--json").json
    assert (report["differing"], report["samples"], report["equal"], report["not_compared"]) == (0, 100, True, {})
    assert report["oracle"]["kernels"] == "BUILTIN_REF"
    assert all(tensor["elements"] for tensor in report["tensors"])


def test_the_keyword_clips() -> None:
    clips = data_path("datasets", "kws01")
    done = tflq("verify", data_path("models", "kws_ref_model.tflite"), "-i", clips)
    assert done.status == 0
    assert done.out.startswith("OK: 0 of 72152000 elements differ from TFLite (")
    assert "), 1000 samples; 13 tensors of " in done.out


def test_text_names_the_oracle(oracle: Oracle) -> None:
    done = tflq("verify", DIGITS, "-n", "3", "--all")
    assert done.status == 0
    assert f"differ from TFLite ({oracle.identity}), 3 samples" in done.out.splitlines()[0]
    assert done.out.count(" 0 ") >= 10


def test_a_difference_is_status_1(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"])
    arguments = ("verify", DIGITS, "-i", "x.npy", "--kernels", "AUTO")
    report = tflq(*arguments, "--json", cwd=tmp_path).json
    done = tflq(*arguments, cwd=tmp_path)
    assert done.status == (0 if report["equal"] else 1)
    assert sum(report["not_compared"].values()) == len(report["tensors"]) - 1
    assert "not compared: " in done.out


def test_known_differences_are_counted_with_their_reasons(tmp_path: Path) -> None:
    """SUM of int8, which TFLite's reference kernel reads as uint8."""
    scale = affine(DType.INT8, 0.1, 3)
    graph = with_constants("sum", (4, 6), (4,), [np.array([1], np.int32)], DType.INT8, scale, keep_dims=False)
    (tmp_path / "sum.tflite").write_bytes(model_to_bytes(graph))
    arguments = ("verify", "sum.tflite", "-n", "5")
    done = tflq(*arguments, "--junit", "found.xml", cwd=tmp_path)
    assert done.status == 0
    assert "known: " in done.out
    assert " elements, because sum: the sum itself: TFLite's reference kernel reads the data as uint8" in done.out
    assert 'failures="0"' in (tmp_path / "found.xml").read_text()
    report = tflq(*arguments, "--json", cwd=tmp_path).json
    assert (report["equal"], report["unknown"]) == (False, 0)
    assert [known["elements"] for known in report["known"]] == [report["differing"]]
    assert report["tensors"][0]["known"] == report["known"]
    assert tflq(*arguments, "--strict", "--junit", "found.xml", "--force", cwd=tmp_path).status == 1
    assert 'failures="1"' in (tmp_path / "found.xml").read_text()


def test_tensorflow_is_an_oracle_too() -> None:
    if not is_installed("tensorflow"):
        pytest.skip("tensorflow is not installed: it comes with tflq[tensorflow]")
    report = tflq("verify", DIGITS, "-n", "2", "--oracle", "tensorflow", "--json").json
    assert (report["differing"], report["oracle"]["package"]) == (0, "tensorflow")
