"""`tflq data`."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import tflq
from tests.support.data import data_path

ALONE = {"TFLQ_DATA": "", "no_proxy": "*", "NO_PROXY": "*"}
NOWHERE = ("--base-url", "http://127.0.0.1:9")


def test_list_says_what_is_published_and_what_the_rest_is_made_of() -> None:
    rows = {row["task"]: row for row in tflq("data", "list", "--json").json["data_sets"]}
    assert list(rows) == ["kws01", "vww01", "ic01", "ad01", "sww01"]
    assert rows["kws01"]["published"] == ["y_labels.csv", "samples"]
    assert rows["ic01"]["made_of"] == "cifar-10-python.tar.gz"
    assert "https://www.cs.toronto.edu" in tflq("data", "list").out


def test_fetch_copies(tmp_path: Path) -> None:
    data_path("datasets", "kws01")
    done = tflq("data", "fetch", "kws01", "--dir", tmp_path)
    assert (done.status, done.err) == (0, "")
    assert "reference the pinned checksums\n" in done.out
    assert done.out.count(" copied\n") == 2
    again = tflq("data", "fetch", "kws01", "--dir", tmp_path, "--json", environment=ALONE)
    assert [row["outcome"] for row in again.json["files"]] == ["already there"] * 2


def test_without_a_network_one_line_says_where_it_is_to_be_had(tmp_path: Path) -> None:
    said = tflq("data", "fetch", "ic01", "--dir", tmp_path, *NOWHERE, environment=ALONE).refused()
    assert "cannot be downloaded: " in said
    home = "benchmark/evaluation/datasets/ic01 of https://github.com/mlcommons/tiny"
    assert said.endswith(f"without a network, put y_labels.csv of {home} into {tmp_path / 'ic01'}")
    (tmp_path / "c").mkdir()
    built = ("data", "build", "ic01", "--from", tmp_path / "c", "--dir", tmp_path, *NOWHERE)
    assert tflq(*built, environment=ALONE).refused() == said
    assert not (tmp_path / "ic01").exists()


def test_an_original_is_needed(tmp_path: Path) -> None:
    said = tflq("data", "build", "ad01", "--dir", tmp_path).refused()
    where = "ToyADMOS of DCASE 2020, https://zenodo.org/record/3678171"
    assert said == f"tflq: ad01 is built from dev_data_ToyCar.zip ({where}); name it with --from"


def test_build_says_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "vww01").mkdir()
    (tmp_path / "vww01" / "y_labels.csv").write_text("000000000001.bin,2,1\n")
    built = ("data", "build", "vww01", "--from", tmp_path / "none", "--dir", tmp_path)
    assert "none: no such file" in tflq(*built).refused()
    assert (
        "available: kws01, vww01, ic01, ad01, sww01; ic02 has the data of ic01"
        in tflq("data", "build", "ic02", "--from", tmp_path).refused()
    )


def test_wrong_labels_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "ic01").mkdir()
    (tmp_path / "ic01" / "y_labels.csv").write_bytes(b"mine")
    assert "move it away" in tflq("data", "fetch", "ic01", "--dir", tmp_path).refused()
