"""`tflq run`: what it writes is what TFLite computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model
from tflq.oracle import Oracle

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
IMAGES = np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"][:20].reshape(20, 1, 8, 8, 1)


def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_all_tensors_from_each_kind_of_file(tmp_path: Path, oracle: Oracle) -> None:
    graph = read_model(DIGITS).main
    expected = oracle.run(DIGITS.read_bytes(), [IMAGES])
    np.save(tmp_path / "x.npy", IMAGES)
    np.savez(tmp_path / "x.npz", images=IMAGES)
    (tmp_path / "x.bin").write_bytes(IMAGES.tobytes())
    for name in ("x.npy", "x.npz", "x.bin"):
        done = tflq("run", DIGITS, "-i", name, "--all-tensors", "-o", "out.npz", "--force", cwd=tmp_path)
        assert (done.status, done.err) == (0, "")
        found = load(tmp_path / "out.npz")
        assert len(found) == len(graph.nodes)
        for node in graph.nodes:
            t = node.outputs[0]
            assert found[graph.tensors[t].name].tobytes() == expected.tensors[t].tobytes()


def test_outputs_and_report(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", IMAGES)
    report = tflq("run", DIGITS, "-i", "x.npy", "-o", "out.npz", "--force", "--json", cwd=tmp_path).json
    assert (report["samples"], report["output"], report["arithmetic"]) == (20, "out.npz", "as is")
    (tensor,) = report["tensors"]
    (array,) = load(tmp_path / "out.npz").values()
    assert (tensor["shape"], tensor["dtype"]) == ([20, 1, 10], "int8")
    assert (tensor["smallest"], tensor["largest"]) == (array.min(), array.max())


def test_real_numbers_and_clipping(tmp_path: Path) -> None:
    quantization = read_model(DIGITS).main.tensors[0].affine
    real = (IMAGES.astype(np.float32) - quantization.zero_point[0]) * quantization.scale[0]
    np.save(tmp_path / "x.npy", IMAGES)
    np.save(tmp_path / "real.npy", real)
    np.save(tmp_path / "far.npy", np.full((1, 8, 8, 1), 99.0))
    tflq("run", DIGITS, "-i", "x.npy", "-o", "a.npz", cwd=tmp_path)
    done = tflq("run", DIGITS, "-i", "real.npy", "--real", "-o", "b.npz", cwd=tmp_path)
    assert done.err == ""
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    far = tflq("run", DIGITS, "-i", "far.npy", "--real", cwd=tmp_path)
    assert far.err == "tflq: 64 input values are outside the range of their input and were clipped\n"
    assert far.status == 0


def test_random_samples_are_the_same_each_time() -> None:
    arguments = ("run", DIGITS, "-n", "3", "--seed", "7")
    assert tflq(*arguments).out == tflq(*arguments).out
    assert tflq(*arguments).out != tflq("run", DIGITS, "-n", "3").out


def test_float(tmp_path: Path) -> None:
    report = tflq("run", DIGITS, "--arithmetic", "float", "--json").json
    assert report["arithmetic"] == "float"
    assert report["tensors"][0]["dtype"] == "float32"
    assert 0 <= report["tensors"][0]["smallest"] <= report["tensors"][0]["largest"] <= 1


def test_threads_change_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", IMAGES)
    for threads in ("1", "3"):
        done = tflq("run", DIGITS, "-i", "x.npy", "--threads", threads, "-o", f"{threads}.npz", cwd=tmp_path)
        assert (done.status, done.err) == (0, "")
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "3.npz").read_bytes()
    assert "--threads" in tflq("run", DIGITS, "-i", "x.npy", "--threads", "0", cwd=tmp_path).refused()


NAMED = {
    "run": ("-o", "out.npz"),
    "verify": (),
    "compare": (),
    "explain": ("--tensor", "CONV_2D_0_0", "--index", "0,0,0"),
    "convert": ("-t", "gap9-ne16", "-o", "out"),
    "sensitivity": ("-t", "gap9-ne16", "-j", 1),
    "search": ("-t", "gap9-ne16", "--min-sqnr", 10, "-j", 1),
    "tune": (),
    "recover": ("-t", "gap9-ne16", "-s", "weight_bits=3", "-o", "out.tflite"),
}


@pytest.mark.parametrize("command", NAMED)
def test_a_number_of_samples_is_one_of_random_samples(command: str, tmp_path: Path) -> None:
    """Next to named samples it was ignored, or selected the first ones."""
    np.save(tmp_path / "x.npy", np.zeros((4, 1, 8, 8, 1), np.int8))
    done = tflq(command, DIGITS, *NAMED[command], "-i", "x.npy", "-n", 2, cwd=tmp_path)
    words = "--samples is the number of random samples; select from named ones with --take START:STOP"
    assert words in done.refused()
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_take_selects_samples(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(-128, 128, (6, 1, 8, 8, 1), np.int8)
    np.save(tmp_path / "x.npy", values)
    for name, options in (("all", ()), ("some", ("--take", "2:5"))):
        assert tflq("run", DIGITS, "-i", "x.npy", *options, "-o", f"{name}.npz", cwd=tmp_path).status == 0
    (key,) = np.load(tmp_path / "all.npz").files
    assert np.array_equal(np.load(tmp_path / "some.npz")[key], np.load(tmp_path / "all.npz")[key][2:5])
    done = tflq("run", DIGITS, "-i", "x.npy", "--take", "2:9", "-o", "none.npz", cwd=tmp_path)
    assert "samples 2:9 were requested; there are 0:6" in done.refused()
    for take in ("0:2", "2"):
        drawn = tflq("verify", DIGITS, "-n", 5, "--take", take, "--json", cwd=tmp_path).json
        assert (drawn["samples"], drawn["differing"]) == (2, 0)
