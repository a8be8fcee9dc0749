"""`compare` takes NNTool's dumps as they are: names of fusions and members, channels first where NNTool has them so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tflq.diagnosis.dumps.files import node_names


@pytest.mark.parametrize(("name", "least"), [("acts.sq8", 18), ("branches_1_43.sq8", 10)])
def test_compare(tmp_path: Path, name: str, least: int) -> None:
    folder = data_path("cases", "gap9_networks")
    network, _, engine = name.partition(".")
    with np.load(folder / f"{name}.npz") as arrays:
        np.save(tmp_path / "in.npy", arrays["input"])
    model = f"{folder / network}.tflite@gap9-{engine}"
    found = tflq("compare", model, folder / f"{name}.npz", "--input", tmp_path / "in.npy", "--json")
    assert found.status == 0
    assert len(found.json["tensors"]) >= least


def test_a_changed_dump_differs(tmp_path: Path) -> None:
    folder = data_path("cases", "gap9_networks")
    with np.load(folder / "acts.sq8.npz") as arrays:
        changed = {key: arrays[key] for key in arrays.files}
    changed["tensor/CONV_2D_0_0_fusion//CONV_2D_0_0"][1, 2, 3, 4] += 1
    np.savez(tmp_path / "changed.npz", **changed)
    np.save(tmp_path / "in.npy", changed["input"])
    model = f"{folder / 'acts'}.tflite@gap9-sq8"
    found = tflq("compare", model, tmp_path / "changed.npz", "--input", tmp_path / "in.npy", "--json")
    assert found.status == 1
    assert [t["name"] for t in found.json["tensors"] if t["differing"]] == ["add;Conv2D;Const_11"]


def test_other_archives_stay() -> None:
    plain = {"tensor/a": np.zeros(1), "b": np.ones(1)}
    assert node_names(plain) is plain
    several = {"tensor/S": np.zeros(1), "tensor/S#1": np.zeros(1), "tensor/F//a": np.ones(1), "tensor/F": np.ones(1)}
    assert list(node_names({**several, "const/w": np.ones(2), "input": np.ones(1)})) == ["a"]
