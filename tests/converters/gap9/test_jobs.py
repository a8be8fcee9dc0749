"""NE16's jobs: registers against those that ran in its RTL, the files, and three filters in the RTL itself."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peers.ne16_rtl import drawn_filter, filters_of, opened, run

from tests.support.c_compiler import build
from tests.support.c_compiler import run as run_program
from tests.support.data import data_path
from tests.support.faults import digits
from tests.support.tracked import ROOT
from tflq.api.read_model import read_model
from tflq.converters.gap9.emit.hardware import config0, hardware_memory
from tflq.converters.gap9.jobs.filters import Filter, filter_of
from tflq.converters.gap9.jobs.memory import LayerMemory, layer_memory
from tflq.converters.gap9.jobs.registers import NAMES, Addresses, jobs_of
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.emit.vectors.collect import job_vectors
from tflq.errors import UnsupportedError
from tflq.interpreter.operands.sliding_windows import Window
from tflq.parallel.executions import for_target, quantized

MAIN = """#include <stdio.h>
#include "ne16_jobs.h"
int main(void) {
    const tflq_ne16_layer_t *last = &tflq_ne16_layers[tflq_ne16_layer_count - 1u];
    printf("%u %u %u %u\\n", tflq_ne16_layer_count, last->job_count, last->image_offset,
           last->jobs[last->job_count - 1u].config0);
    return 0;
}
"""
PADDED = 91
"""A seed of `drawn_filter` that gives a padded 5x5 kernel."""
DILATED = 607
"""A seed that gives a dilated 3x3 kernel and more than 8 channels in the last block."""
AT = Addresses(features=0x1000, weights=0x4000, output=0x8000, multiplier=0x6000, shift=0x6100, bias=0x6200)


def registers(layer: Filter) -> list[dict[str, int]]:
    return [{name: job.get(name, 0) for name in NAMES} for job in jobs_of(layer, AT)]


@pytest.mark.parametrize(("case", "node"), [("kws_conv2_w4", "CONV_2D_0_2"), ("kws_dw1_w4", "DEPTHWISE_CONV_2D_0_1")])
def test_registers_that_ran(case: str, node: str) -> None:
    wanted: dict[str, Any] = json.loads(data_path("cases", "ne16", "ne16_jobs", f"{case}.json").read_text())
    target = find_target("gap9-ne16")
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    graph = quantized(model.main, target, parse_settings(target.settings, ("weight_bits=4",)))
    index = next(i for i, n in enumerate(graph.nodes) if n.name == node)
    (found,) = registers(filter_of(graph, index))
    assert found == {name: wanted["registers"].get(name, 0) for name in NAMES}


@pytest.mark.parametrize(
    ("size", "pad", "field"),
    [(5, 1, 2), (25, 1, 3), (6, 1, 1), (4, 2, 4), (25, 0, 0)],
)
def test_padding_counts_from_the_end(size: int, pad: int, field: int) -> None:
    """RIGHT and BOTTOM: pad + (3 - size mod 3), counted from the fifth input of the last subtile."""
    window = Window((3, 3), top=1, bottom=pad, left=1, right=pad)
    side = size + 2 - 1 - pad
    (job,) = registers(Filter("3x3", window, 77, (side, side, 4), (size, size, 4), 8, 128))
    assert job["PADDING"] == 1 << 28 | field << 24 | field << 20 | 1 << 16 | 77
    rest = size % 3
    assert job["SUBTILE_REM2"] == (rest + 2 if rest else 0) * 0x10001


def test_an_odd_output_pixel_runs_pixel_by_pixel() -> None:
    window = Window((3, 3), (2, 2), top=1, left=1)
    for channels, jobs in ((6, 9), (7, 25)):
        layer = Filter("3x3", window, 0, (10, 10, 3), (5, 5, channels), 8, 128)
        assert len(registers(layer)) == jobs


def test_what_no_job_computes() -> None:
    target = find_target("gap9-ne16")
    settings = parse_settings(target.settings, ("feature_bits=16",))
    execution = for_target(digits().main, target, settings)
    with pytest.raises(UnsupportedError, match="16-bit features"):
        layer_memory(execution.graph, 0)
    report = json.loads(target.emit(execution.graph, digits())["ne16_jobs.json"])
    assert report["layers"] == []
    assert "16-bit features" in report["refused"][0]["reason"]


def test_files_agree(tmp_path: Path) -> None:
    target = find_target("gap9-ne16")
    execution = for_target(digits().main, target, parse_settings(target.settings, ("weight_bits=5",)))
    files = target.emit(execution.graph, digits())
    report = json.loads(files["ne16_jobs.json"])
    for name in ("ne16_jobs.c", "ne16_jobs.h"):
        (tmp_path / name).write_bytes(files[name])
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    for layer in report["layers"]:
        index = next(i for i, n in enumerate(execution.graph.nodes) if n.name == layer["node"])
        memory = layer_memory(execution.graph, index)
        offset, size = layer["image"]["offset"], layer["image"]["size_bytes"]
        assert files["ne16_memory.bin"][offset : offset + size] == memory.constants
        assert [dict(zip(report["registers"], job, strict=True)) for job in layer["jobs"]] == [
            {name: job.get(name, 0) for name in NAMES} for job in memory.jobs
        ]
    assert len(report["layers"]) > 2
    program = build(tmp_path, sources=("ne16_jobs.c", "main.c"))
    printed = [int(word) for word in run_program(program, b"").split()]
    last = report["layers"][-1]
    assert printed == [len(report["layers"]), len(last["jobs"]), last["image"]["offset"], last["jobs"][-1][-1]]


def test_the_page_explains_every_register() -> None:
    target = find_target("gap9-ne16")
    execution = for_target(digits().main, target, parse_settings(target.settings))
    (job,) = layer_memory(execution.graph, 0).jobs
    page = (ROOT / "docs" / "rules" / "gap9" / "ne16.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([A-Z0-9_]+) \| .+ \| (0x[0-9a-f]+) \|$", page, re.MULTILINE)
    assert rows == [(str(n), name, hex(job.get(name, 0))) for n, name in enumerate(NAMES)]


def test_the_cluster_has_no_jobs() -> None:
    target = find_target("gap9-sq8")
    execution = for_target(digits().main, target, parse_settings(target.settings))
    assert not [name for name in target.emit(execution.graph, digits()) if "ne16" in name]


def test_padding_that_jobs_cannot_make_stands_in_memory() -> None:
    """A 5x5 kernel runs tap by tap: its input has the padding value around it, two pixels on each side."""
    layer = drawn(PADDED)
    assert (layer.layer.mode, layer.layer.padded_in_memory) == ("taps", (2, 2, 2, 2))
    images, height, width, channels = layer.features_shape
    found = layer.features(np.ones((images, height - 4, width - 4, channels), np.uint8))
    assert found.shape == layer.features_shape
    assert set(found[0, :2].ravel()) == {layer.layer.padding_value}
    assert set(found[0, 2:-2, 2:-2].ravel()) == {1}
    assert len(layer.jobs) == 25


def drawn(seed: int) -> LayerMemory:
    target = find_target("gap9-ne16")
    graph = drawn_filter(np.random.default_rng([16, seed]))
    return layer_memory(for_target(graph, target, parse_settings(target.settings)).graph, 0)


def test_hardware_bin_is_what_the_jobs_read() -> None:
    """CONFIG0 is the last job's; the planes are those of the layer's memory, of dilated 3x3 kernels tap by tap, too."""
    target, kinds = find_target("gap9-ne16"), set()
    for seed in (500, 504, 508, 513, 531, 538, DILATED):
        graph = drawn_filter(np.random.default_rng([16, seed]))
        graph = for_target(graph, target, parse_settings(target.settings, ("weight_bits=5",))).graph
        memory = layer_memory(graph, 0)
        assert config0(graph, 0) == memory.jobs[-1]["CONFIG0"]
        content, entries = hardware_memory(graph)
        (planes,) = (entry for entry in entries if entry.kind == "weights_planes")
        assert planes.layout == memory.layer.mode
        assert memory.constants[: planes.size_bytes] == content[planes.offset : planes.offset + planes.size_bytes]
        kinds.add((memory.layer.mode, memory.layer.window.kernel, memory.layer.is_strided))
    assert len(kinds) == 6


@pytest.mark.parametrize("seed", [PADDED, 508, 531], ids=["taps", "depthwise of stride 2", "odd channels"])
def test_vectors_of_single_jobs(seed: int) -> None:
    """Jobs of stride 2 add their pixels; those of taps 32-bit sums, whose last is clipped to the layer's output."""
    target = find_target("gap9-ne16")
    execution = for_target(drawn_filter(np.random.default_rng([16, seed])), target, parse_settings(target.settings))
    ((memory, x, y),) = filters_of(execution, seed)
    assert isinstance(memory, LayerMemory)
    found = job_vectors(execution.graph, 0, x[None], y[None])
    outputs, before, after = found["ne16_outputs"][0], found["ne16_before"][0], found["ne16_after"][0]
    assert outputs.shape == (len(memory.jobs), memory.output_bytes)
    assert np.array_equal(after[: memory.at.output], before[: memory.at.output])
    assert np.array_equal(after[memory.at.output :], outputs[-1])
    assert np.array_equal(memory.output(outputs[-1].tobytes()).reshape(-1), y.reshape(-1))
    assert len({state.tobytes() for state in outputs}) == len(outputs)
    if memory.layer.out_bits == 8:
        for earlier, later in pairwise(outputs):
            assert np.array_equal(earlier[earlier != 0], later[earlier != 0])
    else:
        first = outputs[0].view("<i4").reshape(memory.output_shape)
        row, column = 3, 2
        codes = memory.features(x)[0, row, column].astype(np.int64)
        assert np.array_equal(first[0, row, column], memory.weights[:, 0, 0] @ codes)


@pytest.mark.parametrize("seed", [500, 504, 513, 531], ids=["1x1", "linear", "depthwise, stride 2", "3x3, stride 2"])
def test_jobs_in_the_rtl(seed: int) -> None:
    """Every byte and cycle of small filters; scripts/peer ne16-rtl runs whole networks."""
    if not Path(os.environ.get("TFLQ_PEERS", ""), "ne16", "ne16_jobs").exists():
        pytest.skip("TFLQ_PEERS has no ne16: NE16's RTL is not set up on this machine")
    data_path("peers", "ne16_rtl")
    target = find_target("gap9-ne16")
    execution = for_target(drawn_filter(np.random.default_rng([16, seed])), target, parse_settings(target.settings))
    ((memory, x, y),) = filters_of(execution, seed)
    assert isinstance(memory, LayerMemory)
    with opened() as engine:
        outcome = run(engine, memory, x, y)
    assert (outcome.differing, outcome.untrue, outcome.stray, outcome.cycles) == (0, 0, 0, outcome.formula)
    assert outcome.values == y.size
