"""`tflq compare`: the first line names the fault; dumps of all kinds; what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.faults import CHANNEL, DIGITS, NODE, corrupted_weights, digits, wrong_multiplier
from tflq.converters.tflite import model_to_bytes
from tflq.graph import DType, GraphBuilder, Model
from tflq.interpreter.execution.values import concatenate
from tflq.parallel.executions import as_is

IMAGES = np.load(DIGITS.parent / "digits_test.npz")["images"][:8].reshape(8, 1, 8, 8, 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    (folder / "weights.tflite").write_bytes(model_to_bytes(corrupted_weights()))
    (folder / "multiplier.tflite").write_bytes(model_to_bytes(wrong_multiplier()))
    np.save(folder / "x.npy", IMAGES)
    execution = as_is(digits())
    graph = execution.graph
    wanted = [t for n in graph.nodes for t in n.outputs]
    found = execution.engine.run([IMAGES], wanted)
    arrays = {graph.tensors[t].name: concatenate([found[t]]) for t in wanted}
    np.savez(folder / "all.npz", **{graph.tensors[graph.inputs[0]].name: IMAGES}, **arrays)
    np.savez(folder / "nodes.npz", **{graph.nodes[i].name: arrays[graph.tensors[t].name] for i, t in enumerate(wanted)})
    np.save(folder / "out.npy", arrays[graph.tensors[graph.outputs[0]].name])
    names = [graph.tensors[t].name for t in wanted[:3]]
    rows = [arrays[name].reshape(8, -1) for name in names]
    (folder / "some.bin").write_bytes(np.concatenate(rows, axis=1).tobytes())
    sizes = np.cumsum([0, *(r.shape[1] for r in rows)])
    entries = {
        name: {"offset": int(offset), "dtype": "int8", "shape": list(arrays[name].shape[1:])}
        for name, offset in zip(names, sizes, strict=False)
    }
    (folder / "map.json").write_text(json.dumps({"sample_bytes": int(sizes[-1]), "tensors": entries}))
    return folder


@pytest.mark.parametrize(("name", "field"), [("weights", "weights"), ("multiplier", "multiplier")])
def test_the_first_line_names_layer_channel_and_cause(files: Path, name: str, field: str) -> None:
    done = tflq("compare", f"{name}.tflite", DIGITS, "-i", "x.npy", cwd=files)
    assert (done.status, done.err) == (1, "")
    first = done.out.splitlines()[0]
    assert f"look at {NODE}, channel {CHANNEL} first: {field} of channel {CHANNEL} differs" in first
    report = tflq("compare", f"{name}.tflite", DIGITS, "-i", "x.npy", "--isolated", "--json", cwd=files).json
    worst = report["ranking"][0]
    assert (worst["node"], worst["channel"], worst["cause"]) == (NODE, CHANNEL, "integers")
    assert len([t for t in report["tensors"] if t["differing"]]) == 1


def test_models_targets_and_arithmetics(files: Path) -> None:
    assert tflq("compare", DIGITS, f"{DIGITS}@tflite", "-n", "4").status == 0
    for second in ([], ["@float"], [f"{DIGITS}@float"]):
        done = tflq("compare", DIGITS, *second, "-n", "4", "--json")
        assert (done.status, done.json["first_only"]) == (1, [])
    far = tflq("compare", f"{DIGITS}@gap9-ne16", "@tflite", "-n", "4", "--json").json
    assert len(far["second_only"]) == 1  # GAP9 pools in front of that ReLU
    assert tflq("compare", DIGITS, "-n", "4", "--tolerance", "100").status == 0


@pytest.mark.parametrize(("units", "unknown"), [(2, 0), (3, 4)])
def test_what_a_dump_of_tflite_is_known_to_have_otherwise(tmp_path: Path, units: int, unknown: int) -> None:
    b = GraphBuilder("chain")
    tanh = b.add("tanh", [b.input("x", (20,), DType.FLOAT32)], (20,), DType.FLOAT32)
    graph = b.build([b.add("neg", [tanh], (20,), DType.FLOAT32)])
    (tmp_path / "chain.tflite").write_bytes(model_to_bytes(graph))
    x = np.linspace(0.1, 2, 40, dtype=np.float32).reshape(2, 20)
    values = as_is(Model([graph])).engine.run([x], [tanh])[tanh]
    values[0, :4].view(np.int32)[:] += units
    names = [graph.tensors[t].name for t in (0, tanh, graph.outputs[0])]
    np.savez(tmp_path / "dump.npz", **dict(zip(names, (x, values, -values), strict=True)))
    arguments = ("compare", "chain.tflite", "dump.npz")
    done = tflq(*arguments, cwd=tmp_path)
    assert done.status == bool(unknown)
    assert ("known: 4 elements, because tanh: last bits: up to 2 ulp" in done.out) == (not unknown)
    report = tflq(*arguments, "--json", cwd=tmp_path).json
    assert (report["equal"], report["explained"]) == (False, not unknown)
    assert sum(known["elements"] for known in report["known"]) == 8 - 2 * unknown
    assert tflq(*arguments, "--strict", cwd=tmp_path).status == 1


def test_dumps_of_all_kinds(files: Path) -> None:
    for dump in (["all.npz"], ["nodes.npz", "-i", "x.npy"], ["out.npy", "-i", "x.npy"]):
        done = tflq("compare", DIGITS, *dump, cwd=files)
        assert (done.status, done.err) == (0, ""), done
    assert tflq("compare", DIGITS, "some.bin", "--map", "map.json", "-i", "x.npy", cwd=files).status == 0
    assert tflq("compare", "all.npz", "all.npz", cwd=files).status == 0
    done = tflq("compare", "weights.tflite", "all.npz", "--json", cwd=files)
    worst = done.json["ranking"][0]
    assert (done.status, worst["node"], worst["channel"], worst["cause"]) == (1, NODE, CHANNEL, "layer")


def test_refusals(files: Path) -> None:
    np.savez(files / "names.npz", dense_1=np.zeros((8, 1, 10), np.int8))
    line = tflq("compare", DIGITS, "names.npz", "-i", "x.npy", cwd=files).refused()
    assert "names.npz: no tensor is called 'dense_1' [8, 1, 10] (nearest: '" in line
    np.savez(files / "size.npz", SOFTMAX_0_9=np.zeros((8, 1, 11), np.int8))
    assert "has shape [8, 1, 11]; the tensor has [1, 10]" in _refused(files, "size.npz")
    np.savez(files / "type.npz", SOFTMAX_0_9=np.full((8, 1, 10), 300, np.int32))
    assert "holds 300..300 in int32; quantized values of int8 lie in -128..127" in _refused(files, "type.npz")
    assert "has 8 samples" in tflq("compare", "all.npz", "all.npz", "-n", "9", cwd=files).refused()
    (files / "alone").mkdir()
    (files / "alone" / "some.bin").write_bytes((files / "some.bin").read_bytes())
    assert "specify it: TENSOR=alone/some.bin" in _refused(files, "alone/some.bin")
    (files / "bad.json").write_text('{"tensors": {"SOFTMAX_0_9": {"offset": 99999, "dtype": "int8", "shape": [1]}}}')
    assert "'SOFTMAX_0_9' ends at byte 100000" in _refused(files, "some.bin", "--map", "bad.json")
    assert "the samples of the dump are unknown" in tflq("compare", DIGITS, "nodes.npz", cwd=files).refused()
    assert "'@gap10' is unknown" in tflq("compare", DIGITS, "@gap10").refused()
    assert "write @aipu, or MODEL.tflite@aipu" in tflq("compare", DIGITS, "aipu").refused()
    assert "names no model" in tflq("compare", "@float", DIGITS).refused()
    assert "no tensor is called 'nix' (nearest: " in tflq("compare", DIGITS, "-n", "1", "--tensor", "nix").refused()
    assert "isolated needs a model" in tflq("compare", "all.npz", "all.npz", "--isolated", cwd=files).refused()


def _refused(files: Path, *arguments: str) -> str:
    return tflq("compare", DIGITS, *arguments, "-i", "x.npy", cwd=files).refused()


def test_an_input_beyond_its_calibrated_range_is_the_first_cause(tmp_path: Path) -> None:
    assert tflq("dequantize", DIGITS, "-o", "float.tflite", cwd=tmp_path).status == 0
    affine = digits().main.tensors[digits().main.inputs[0]].affine
    real = (IMAGES.astype(np.float32) - np.float32(affine.zero_point[0])) * affine.scale[0]
    np.save(tmp_path / "few.npy", real / 4)
    np.save(tmp_path / "x.npy", real)
    given = ("--calibrate", "few.npy", "-i", "x.npy", "--real")
    done = tflq("compare", "float.tflite@gap9-ne16", *given, "--json", cwd=tmp_path)
    worst = done.json["ranking"][0]
    assert worst["cause"] == "saturation"
    assert f"the samples reach {real.min():.4g}..{real.max():.4g}" in worst["words"]
