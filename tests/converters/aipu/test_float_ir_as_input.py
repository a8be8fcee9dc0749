"""A float IR as a model: it runs, is calibrated, converted, compared and searched like the .tflite behind it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.aipu_golden import read_ir
from tests.support.data import data_files
from tflq.cli import main
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.diagnosis.inspection import refusals
from tflq.errors import SampleError, UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, float_view
from tflq.interpreter import Engine, lower
from tflq.parallel.executions import for_target
from tflq.schemas.aipu import Layer, Network, write_network

MODELS = data_files("corpus", "single_op_float")
WITHOUT = ("ATAN2", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SHAPE", "WHERE")
"""Not translated, or suppression of boxes, which is defined on quantized values alone."""

WINDOW = "LOCAL_RESPONSE_NORMALIZATION"
"""Of TFLite the window ends in front of channel c + radius; the Parser's, of 2 radius + 1 channels, behind it."""

EXACT = 2e-5
"""Of the largest value: sums in another order, functions rounded elsewhere."""


def _ir(source: Graph) -> Graph:
    return graph_of(float_network_of(translate(float_view(source), "model"), "model"))


@pytest.mark.parametrize("is_quantized", [False, True])
def test_no_other_target_takes_layers_of_the_ir(is_quantized: bool) -> None:
    """Slice has the name of TFLite's operator and no operands: `inspect` and `convert` refuse it by the same words."""
    b = GraphBuilder()
    x = b.input("x", (1, 6, 4), DType.FLOAT32)
    inputs = (x, *(b.constant(name, np.array(at, np.int32)) for name, at in (("at", [0, 1, 0]), ("size", [1, 3, 4]))))
    graph = _ir(b.build((b.add("slice", inputs, (1, 3, 4), DType.FLOAT32),)))
    graph = calibrate(graph, [np.random.default_rng(2).normal(size=(4, 1, 6, 4)).astype(np.float32)])
    if is_quantized:
        graph = AIPU.quantize(graph, parse_settings(AIPU.settings))
    found = {refused.target: refused.reasons for refused in refusals(graph)}
    assert found.pop("aipu") == ()
    assert len(found) > 5
    for name, reasons in found.items():
        (reason,) = reasons
        assert "is a layer of target aipu, which alone takes such files" in reason
        target = find_target(name)
        with pytest.raises(UnsupportedError, match=f"target {name}: operator 0 .*is a layer of target aipu"):
            for_target(graph, target, parse_settings(target.settings))


def _network() -> tuple[Graph, Array]:
    """Return a convolution, an average, LRN and a dense layer, with samples."""
    rng = np.random.default_rng(5)
    b = GraphBuilder()
    x = b.input("x", (1, 6, 6, 4), DType.FLOAT32)
    w, c = rng.normal(size=(5, 3, 3, 4)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    inputs = (x, b.constant("w", w), b.constant("c", c))
    keys = {"padding": "same", "stride_w": 1, "stride_h": 1, "fused_activation_function": "relu"}
    y = b.add("conv_2d", inputs, (1, 6, 6, 5), DType.FLOAT32, **keys)
    y = b.add(
        "local_response_normalization", (y,), (1, 6, 6, 5), DType.FLOAT32, radius=2, bias=1.0, alpha=0.1, beta=0.5
    )
    y = b.add("reshape", (y, b.constant("shape", np.array([1, 180], np.int32))), (1, 180), DType.FLOAT32)
    dense = (y, b.constant("v", rng.normal(size=(3, 180)).astype(np.float32)), b.constant("d", np.ones(3, np.float32)))
    return b.build((b.add("fully_connected", dense, (1, 3), DType.FLOAT32),)), rng.normal(size=(12, 1, 6, 6, 4)).astype(
        np.float32
    )


def _wider(graph: Graph) -> Graph:
    """Return a response normalization of 2 radius + 1 channels: of the input with a channel of zeros in front."""
    builder, (node,) = GraphBuilder(), graph.nodes
    (*rest, channels), attributes = graph.tensors[node.inputs[0]].shape, dict(node.attributes.items())
    x = builder.input("x", (*rest, channels), DType.FLOAT32)
    band = np.abs(np.subtract.outer(np.arange(channels), np.arange(channels))) <= attributes["radius"]
    value = builder.add("square", (x,), (*rest, channels), DType.FLOAT32)
    for operator, number in (
        ("batch_matmul", band),
        ("mul", attributes["alpha"]),
        ("add", attributes["bias"]),
        ("pow", -attributes["beta"]),
    ):
        constant = builder.constant(operator, np.asarray(number, np.float32))
        value = builder.add(operator, (value, constant), (*rest, channels), DType.FLOAT32)
    return builder.build((builder.add("mul", (x, value), (*rest, channels), DType.FLOAT32),))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write the network as float IR and its samples."""
    graph, samples = _network()
    text, binary = write_network(float_network_of(translate(graph, "net"), "net"))
    (tmp_path / "net.txt").write_text(text, encoding="utf-8")
    (tmp_path / "net.bin").write_bytes(binary)
    np.save(tmp_path / "x.npy", samples)
    return tmp_path


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
def test_every_operator_runs_in_float_as_in_tflite(path: Path) -> None:
    graph = read_model(path).main
    if path.stem in WITHOUT:
        assert AIPU.check(graph, parse_settings(AIPU.settings)) or "NON_MAX" in path.stem or not graph.nodes
        return
    if path.stem == WINDOW:
        graph = _wider(graph)
    rng, layers = np.random.default_rng(3), _ir(read_model(path).main)
    tensors = [graph.tensors[t] for t in graph.inputs]
    drawn = [
        rng.normal(size=(5, *t.shape)).astype(np.float32)
        if t.dtype is DType.FLOAT32
        else rng.integers(0, 4, (5, *t.shape)).astype(t.dtype.storage)
        for t in tensors
    ]
    expected = Engine(lower(graph)).run(drawn)
    given = [x.astype(layers.tensors[t].dtype.storage) for x, t in zip(drawn, layers.inputs, strict=True)]
    found = Engine(layers, "tflite").run(given)
    for ours, theirs in zip(layers.outputs, graph.outputs, strict=True):
        y, z = (np.asarray(v, np.float64) for v in (found[ours], expected[theirs]))
        assert y.shape == z.shape
        finite = np.isfinite(z)
        assert np.array_equal(np.isfinite(y), finite)
        assert np.abs(y - z)[finite].max(initial=0) <= EXACT * np.abs(z[finite]).max(initial=1)


def test_calibration_gives_every_range_that_the_target_needs() -> None:
    """The ranges of the .tflite's tensors, and that of what LRN quantizes within itself."""
    graph, samples = _network()
    found = calibrate(_ir(graph), [samples], StatisticsOptions("extrema"))
    known = calibrate(graph, [samples], StatisticsOptions("extrema"))
    outputs = [g.tensors[node.outputs[0]].range for g in (found, known) for node in g.nodes if "conv" in node.operator]
    for a, b in ((getattr(r, end) for r in outputs if r is not None) for end in ("minimum", "maximum")):
        assert np.allclose(a, b, rtol=1e-6)
    (squares,) = next(node for node in found.nodes if node.operator == "lrn").intermediates or ()
    limits = found.tensors[squares].range
    assert limits is not None
    assert limits.maximum[0] > 0
    quantized = lower(AIPU.quantize(found, parse_settings(AIPU.settings)), AIPU.arithmetic)
    codes = AIPU.encode(samples, quantized.tensors[quantized.inputs[0]])
    y = quantized.tensors[quantized.outputs[0]].affine
    ours = (Engine(quantized).run([codes])[quantized.outputs[0]].astype(float) - y.zero_point[0]) * y.scale[0]
    theirs = Engine(_ir(graph), "tflite").run([samples])
    assert np.abs(ours - next(iter(theirs.values()))).max() <= 6 * y.scale[0]


def test_samples_that_are_not_finite_are_named() -> None:
    graph, samples = _network()
    samples[3, 0, 0, 0, 0] = np.nan
    with pytest.raises(SampleError, match="'x_0' is nan in sample 3"):
        calibrate(_ir(graph), [samples], StatisticsOptions("mean", 1))


def test_the_commands_take_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Convert, compare and sensitivity of the IR alone, with samples."""
    ir, x = str(files / "net.txt"), str(files / "x.npy")
    out = files / "out"
    assert main(["convert", ir, "-t", "aipu", "--calibrate", x, "-o", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["net.bin", "net.txt", "net_o.bin", "net_o.txt"]
    capsys.readouterr()
    assert main(["compare", ir, f"{ir}@aipu", "-i", x, "--calibrate", x, "--strategy", "extrema", "--json"]) == 1
    tensors = json.loads(capsys.readouterr().out)["tensors"]
    assert len(tensors) == 5
    assert all(one["sqnr_db"] > 25 for one in tensors)
    assert main(["sensitivity", ir, "-t", "aipu", "-i", x, "--calibrate", x]) == 0
    assert "convolution" in capsys.readouterr().out


def test_single_layers_stay_in_float(files: Path) -> None:
    samples = np.load(files / "x.npy")
    target = tflq.TargetOptions("aipu", layers=("*:float=true",))
    options = tflq.CalibrationOptions(samples=str(files / "x.npy"), strategy="extrema")
    floats = tflq.run(str(files / "net.txt"), samples).tensors
    errors = []
    for chosen in (target, "aipu"):
        found = tflq.run(str(files / "net.txt"), samples, target=chosen, calibration=options).tensors
        ((name, codes),) = found.items()
        slope, offset = np.polyfit(codes.reshape(-1).astype(np.float64), floats[name].reshape(-1), 1)
        errors.append(np.square(slope * codes + offset - floats[name]).mean())
    assert errors[0] < errors[1] / 2


def test_the_parsers_mode_of_integers_is_refused_by_name() -> None:
    network = float_network_of(translate(_network()[0], "net"), "net")
    changed = replace(network, header={**network.header, "compat_quantized_model": True})
    with pytest.raises(UnsupportedError, match=r"compat_quantized_model=true.*allowed is false"):
        graph_of(changed)


def test_layers_without_a_float_definition_are_named() -> None:
    """Regions of interest are defined on quantized values: they need ranges, not samples."""
    network = Network(
        {"model_name": "m", "input_tensors": ("x_0", "r_0"), "output_tensors": ("y_0",)},
        tuple(_region_layers()),
    )
    with pytest.raises(UnsupportedError, match="no kernel for max_roi_pool in arithmetic 'aipu_float'"):
        Engine(graph_of(network), "tflite")


def _region_layers() -> list[Layer]:
    from tflq.schemas.aipu import Edge

    x, r, y = Edge("x_0", (1, 8, 8, 2), "float32"), Edge("r_0", (3, 5), "float32"), Edge("y_0", (3, 2, 2, 2), "float32")
    keys = {"pooled_height": 2, "pooled_width": 2, "spatial_x": 1.0, "spatial_y": 1.0}
    layers = [Layer(e.name[:-2], "Input", (), (e,), {}) for e in (x, r)]
    return [*layers, Layer("y", "MaxRoiPool", (x, r), (y,), keys)]


def test_golden_float_irs_run(tmp_path: Path) -> None:
    """The vendor's IR of each single operator runs in float, but for regions and boxes."""
    count = 0
    for path in data_files("cases", "aipu_parser", pattern="*.txt"):
        if path.stem.endswith("_o"):
            continue
        graph = graph_of(read_ir(path.parent, path.stem))
        source = Model([graph], source=str(path)).main
        drawn = [
            np.random.default_rng(1)
            .uniform(0.1, 2, (2, *source.tensors[t].shape))
            .astype(source.tensors[t].dtype.storage)
            for t in source.inputs
        ]
        assert Engine(source, "tflite").run(drawn)
        count += 1
    assert count > 100 or count == 0
