"""Test vectors hold every bit: C that computes a layer from them alone gets the expected outputs."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target, target_names
from tflq.converters.tflite import read_model
from tflq.emit.vectors import LayerVectors, Vector, collect, files_of, selected_layers
from tflq.emit.vectors.collect import integers_of
from tflq.emit.vectors.files import hex_text, words_of
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Array
from tflq.interpreter import Engine
from tflq.parallel.executions import Execution, as_is, for_target
from tflq.sampling import RandomSamples

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
SAMPLES = 3
POINTWISE = 2
"""Layer of the model: a 1x1 convolution."""

BENCH = """
#include <stdio.h>
#include "conv_2d_0_2.h"
#define L(name) conv_2d_0_2_##name
static int32_t mbq(int32_t x, int32_t m, int32_t s) {
    int64_t p = (int64_t)(int32_t)((uint32_t)x << (s > 0 ? s : 0)) * m;
    int32_t high = (int32_t)((p + (p >= 0 ? 1 << 30 : 1 - (1 << 30))) / ((int64_t)1 << 31));
    int right = s > 0 ? 0 : -s;
    int32_t mask = (int32_t)(((int64_t)1 << right) - 1), rest = high & mask;
    return (high >> right) + (rest > (mask >> 1) + (high < 0));
}
int main(void) {
    int rows = CONV_2D_0_2_INPUT0_COUNT / INPUTS, wrong = 0;
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < OUTPUTS; o++) {
            int32_t total = L(constant2)[o];
            for (int i = 0; i < INPUTS; i++)
                total += L(constant1)[o * INPUTS + i] * (L(input0)[r * INPUTS + i] - (ZI));
            int32_t y = mbq(total, L(rule_multiplier)[o], L(rule_shift)[o]) + (ZO);
            y = y < MINIMUM ? MINIMUM : y > MAXIMUM ? MAXIMUM : y;
            wrong += y != L(output0)[r * OUTPUTS + o];
        }
    printf("%d of %d wrong", wrong, rows * OUTPUTS);
    return 0;
}
"""


def digits(target: str | None = None) -> Execution:
    model = read_model(DIGITS)
    if target is None:
        return as_is(model)
    found = find_target(target)
    return for_target(model.main, found, parse_settings(found.settings))


def vectors_of(execution: Execution, *patterns: str) -> list[LayerVectors]:
    samples = RandomSamples(execution.source, SAMPLES, 4)
    return collect(execution, samples, selected_layers(execution.graph, patterns))


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


def gcc(*arguments: object) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: the C arrays are not compiled")
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", [None, *target_names()])
def test_every_c_file_compiles(target: str | None, tmp_path: Path) -> None:
    layers = vectors_of(digits(target))
    write(tmp_path, files_of(layers, "c", {}))
    gcc("-c", "-o", "/dev/null", "-xc", _one_unit(tmp_path))


def _one_unit(folder: Path) -> Path:
    """Return a file that includes all sources, so that equal names would clash."""
    unit = folder / "all.c"
    unit.write_text("".join(f'#include "{path.name}"\n' for path in sorted(folder.glob("*.c"))))
    return unit


def test_c_computes_the_layer_from_its_vectors(tmp_path: Path) -> None:
    (layer,) = vectors_of(digits(), str(POINTWISE))
    write(tmp_path, files_of([layer], "c", {}))
    outputs, *_, inputs = next(v.values.shape for v in layer.vectors if v.name == "constant1")
    numbers = {
        "INPUTS": inputs,
        "OUTPUTS": outputs,
        "ZI": layer.numbers["input_zero_point"],
        "ZO": layer.numbers["rule.zero_point"],
        "MINIMUM": layer.numbers["rule.minimum"],
        "MAXIMUM": layer.numbers["rule.maximum"],
    }
    (tmp_path / "bench.c").write_text(BENCH)
    defines = [f"-D{name}={value}" for name, value in numbers.items()]
    gcc(*defines, "-o", tmp_path / "bench", tmp_path / "bench.c", tmp_path / f"{layer.identifier}.c")
    done = subprocess.run([tmp_path / "bench"], capture_output=True, text=True, check=True)
    count = SAMPLES * 8 * 8 * outputs
    assert done.stdout == f"0 of {count} wrong"


@pytest.mark.parametrize("target", [None, "gap9-ne16"])
def test_npz_and_hex_hold_what_the_engine_computes(target: str | None) -> None:
    execution = digits(target)
    layers = vectors_of(execution)
    archives, texts = files_of(layers, "npz", {}), files_of(layers, "hex", {})
    index = json.loads(texts["index.json"])
    samples = RandomSamples(execution.source, SAMPLES, 4)
    inputs = execution.encode(samples.take(0, SAMPLES))
    graph = execution.graph
    computed = Engine(graph, "tflite").run(inputs, tuple(t for node in graph.nodes for t in node.outputs))
    for layer, entry in zip(layers, index["layers"], strict=True):
        arrays = np.load(io.BytesIO(archives[f"{layer.identifier}.npz"]))
        wanted = computed[graph.nodes[layer.index].outputs[0]]
        np.testing.assert_array_equal(arrays["output0"], wanted)
        for array in entry["arrays"]:
            assert arrays[array["identifier"]].shape == tuple(array["shape"])
            read = _read_hex(texts[array["file"]].decode(), array["dtype"]).reshape(array["shape"])
            assert read.tobytes() == arrays[array["identifier"]].tobytes()


def test_the_readme_names_files_that_are_there_and_its_python_runs(tmp_path: Path) -> None:
    layers = vectors_of(digits("gap9-ne16"))
    first = layers[0]
    output = next(v for v in first.vectors if v.role == "output")
    for kind in ("c", "hex", "npz"):
        files = files_of(layers, kind, {})
        text = files["README.md"].decode()
        named = re.findall(r'[("](\w+\.(?:hex|h|npz))"', text)
        assert named
        assert set(named) <= set(files)
        assert f"Layers with ne16_registers: {first.identifier}" in text
    (tmp_path / f"{first.identifier}.npz").write_bytes(files[f"{first.identifier}.npz"])
    code = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    wanted = f"import numpy as np; result = np.array({output.values[0].tolist()})"
    done = subprocess.run([sys.executable, "-c", f"{wanted}\n{code}"], cwd=tmp_path)
    assert done.returncode == 0
    assert f"wanted [0:{output.values.size - 1}]" in files_of(layers, "hex", {})["README.md"].decode()


def _read_hex(text: str, dtype: str) -> Array:
    """Read as $readmemh does: comments go, words are hexadecimal."""
    words = [int(line, 16) for line in text.splitlines() if not line.startswith("//")]
    size_bytes = np.dtype(dtype).itemsize
    return np.array(words, f"u{size_bytes}").view(dtype)


@pytest.mark.parametrize("target", [name for name in target_names() if name.startswith("gap9")])
def test_multipliers_of_a_target_are_there(target: str) -> None:
    (layer,) = vectors_of(digits(target), "0")
    names = [v.name for v in layer.vectors if v.role == "integers"]
    assert "filter.rescaling.mul_bias.multiplier" in names
    assert not any("prepared" in name or "step_map" in name for name in (*names, *layer.numbers))


def test_order_and_selection() -> None:
    execution = digits()
    layers = vectors_of(execution, "softmax", "CONV_2D_0_*")
    assert [layer.operator for layer in layers] == ["conv_2d", "conv_2d", "conv_2d", "softmax"]
    roles = [v.role for v in layers[0].vectors]
    assert (roles[0], roles[-1]) == ("input", "output")
    assert set(roles) == {"input", "constant", "integers", "output"}
    with pytest.raises(OptionError, match="layer pattern 'nowhere' matches no operator"):
        selected_layers(execution.graph, ["nowhere"])


def test_constants_of_every_type() -> None:
    extremes = [np.iinfo(kind) for kind in ("int8", "uint8", "int16", "int32", "int64", "uint64")]
    arrays = [np.array([i.min, i.max], i.dtype) for i in extremes]
    arrays += [np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32), np.array([0.1]), np.array([True])]
    words = [words_of(array) for array in arrays]
    assert words[3] == ["(-2147483647 - 1)", "2147483647"]
    assert words[4] == ["INT64_MIN", "INT64_C(9223372036854775807)"]
    assert words[6][:4] == ["NAN", "INFINITY", "-INFINITY", "-0x0.0p+0f"]
    assert hex_text(Vector("input", "x", np.array([-1, 127], np.int16))).splitlines()[1:] == ["ffff", "007f"]
    assert hex_text(Vector("input", "x", np.array([1.0], np.float32))).splitlines()[1:] == ["3f800000"]


def test_half_precision_has_no_c_type() -> None:
    layer = LayerVectors(0, "x", "x", "relu", "float", (Vector("input", "i", np.zeros(1, np.float16)),), {}, {})
    with pytest.raises(UnsupportedError, match="use vectors npz or hex"):
        files_of([layer], "c", {})


@dataclass(frozen=True, eq=False)
class _Gate:
    multiplier: Array


@dataclass(frozen=True, eq=False)
class _Cell:
    gates: tuple[_Gate, ...]
    first: _Gate
    wide: Array
    bounds: tuple[int, float]


def test_integers_in_tuples_and_in_several_places() -> None:
    gate = _Gate(np.array([1 << 30], np.int64))
    found = integers_of(_Cell((gate, _Gate(np.array([2]))), gate, np.array([1 << 40]), (1, np.inf)))
    assert {name: a.dtype for name, a in found.arrays.items()} == {
        "gates.0.multiplier": np.int32,
        "gates.1.multiplier": np.int32,
        "wide": np.int64,
    }
    assert found.numbers == {"bounds": [1, "inf"]}
