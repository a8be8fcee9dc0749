"""What a network costs on GAP9: the published networks to one cycle, and no figure without its error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.faults import digits
from tflq.api.estimate import EstimateResult, estimate
from tflq.api.options import TargetOptions
from tflq.converters.estimate import AT_LEAST, Estimate, Figure, Grade, exact, not_offered, total, within
from tflq.converters.gap9.estimate import POINTS, RTL
from tflq.converters.gap9.jobs.filters import filter_of, is_on_ne16
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target, target_names
from tflq.errors import GraphError
from tflq.interpreter import lower
from tflq.parallel.executions import quantized

SUBMITTED = {
    "kws": ("kws_ref_model", 5, ("0:use_ne16=false",), 175823),
    "ic": ("pretrainedResnet_quant", 7, (), 227921),
    "vww": ("vww_96_int8", 5, (), 434353),
    "ad": ("ad01_int8", 6, (), 63775),
}
"""Model, weight bits and layer rules of the published submission, and the cycles that the formula gives."""
ENERGY_ERRORS = {
    "0.80 V, 370 MHz": {"kws": -11.4, "ic": 3.5, "vww": -1.7, "ad": 7.6},
    "0.65 V, 240 MHz": {"kws": -10.3, "ic": 3.0, "vww": -1.2, "ad": 6.8},
}


def estimated(model: str, *settings: str, target: str = "gap9-ne16", layers: tuple[str, ...] = ()) -> EstimateResult:
    path = data_path("models", f"{model}.tflite")
    return estimate(path, TargetOptions(target, settings, layers))


def ends(figure: Figure) -> tuple[float, float, float]:
    assert figure.value is not None
    assert figure.low is not None
    assert figure.high is not None
    return figure.low, figure.value, figure.high


@pytest.mark.parametrize("name", SUBMITTED)
def test_published_networks(name: str) -> None:
    model, bits, layers, predicted = SUBMITTED[name]
    found = estimated(model, f"weight_bits={bits}", layers=layers).estimate
    row = next(r for r in published() if r["model"] == name)
    measured = 370e6 / row["inferences_per_s"]["0.80V_370MHz"]
    cycles = found.cycles
    low, value, high = ends(cycles)
    assert round(value) == predicted
    assert low < measured < high
    assert cycles.grade is (Grade.FITTED if name == "ad" else Grade.SINGLE_CASE)
    assert found.totals["MACs"].value == row["macs"]


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_energies_of_measured_cycles(point: Any) -> None:
    key = point.name.replace(" V, ", "V_").replace(" ", "")
    for row in published():
        cycles = point.megahertz * 1e6 / row["inferences_per_s"][key]
        error = 100 * (point.energy(cycles, row["macs"]) / row["energy_uj"][key] - 1)
        assert round(error, 1) == ENERGY_ERRORS[point.name][row["model"]]


def published() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(data_path("cases", "ne16", "published_gap9.json").read_text())["measured"]
    return found


def test_taps_have_no_total() -> None:
    found = estimated("kws_ref_model").estimate
    first = found.layers[0]
    assert (first.cycles.grade, found.cycles.grade) == (Grade.NOT_OFFERED, Grade.NOT_OFFERED)
    assert "CONV_2D_0_0" in found.cycles.basis
    assert first.engine_cycles == exact(219924, "cycles", RTL)
    least = found.totals[AT_LEAST]
    assert least.grade is Grade.LOWER_BOUND
    bounds = {name: f for name, f in found.totals.items() if name.startswith(("time", "energy"))}
    assert {f.grade for f in bounds.values()} == {Grade.LOWER_BOUND}
    assert bounds["time at 0.80 V, 370 MHz"].value == least.value / 370


def test_the_cluster() -> None:
    found = estimated("pretrainedResnet_quant", target="gap9-sq8").estimate
    low, _, high = ends(found.cycles)
    assert low < 2066826 < high  # the published log of the same layers
    assert all(layer.engine_cycles is None for layer in found.layers)
    depthwise = estimated("kws_ref_model", target="gap9-sq8").estimate
    assert "depthwise_conv_2d" in depthwise.cycles.basis


@pytest.mark.parametrize(("name", "count"), [("kws", 1), ("ic", 1), ("vww", 1), ("ad", 10)])
def test_the_one_product_of_the_log(name: str, count: int) -> None:
    """Of fully connected layers on the cluster that of ResNet-8 alone has a figure."""
    found = estimated(SUBMITTED[name][0], target="gap9-sq8").estimate
    products = [layer for layer in found.layers if layer.operator == "fully_connected"]
    assert [layer.cycles.is_offered for layer in products] == [name == "ic"] * count


def test_errors_of_layers_networks_and_times() -> None:
    """13 % for a layer, 12 % for a network fitted (docs/guides/estimate.md); times and energies hold what the cycles
    hold."""
    found = estimated("ad01_int8").estimate
    fitted = [layer.cycles for layer in found.layers if layer.cycles.grade is Grade.FITTED]
    assert fitted
    for cycles, error in (*((c, 0.13) for c in fitted), (found.cycles, 0.12)):
        low, value, high = ends(cycles)
        assert (low / value, high / value) == pytest.approx((1 - error, 1 + error))
    for name, figure in found.totals.items():
        if name.startswith(("time", "energy")):
            low, value, high = ends(figure)
            assert low < value < high


def test_a_layer_holds_its_arrays() -> None:
    target = find_target("gap9-ne16")
    graph = lower(quantized(digits().main, target, parse_settings(target.settings)), "gap9")
    filters = [(n, filter_of(graph, i)) for i, n in enumerate(graph.nodes) if is_on_ne16(n)]
    assert len({layer.mode for _, layer in filters}) > 1
    for node, layer in filters:
        maps = [graph.tensors[t] for t in (node.inputs[0], node.outputs[0])]
        arrays = sum(int(np.prod(t.shape)) * t.dtype.storage.itemsize for t in maps)
        assert layer.working_set_bytes == arrays + layer.planes_bytes + layer.parameter_bytes


def test_sixteen_bits_are_not_offered() -> None:
    assert "16-bit features" in estimated("ad01_int8", "feature_bits=16").estimate.cycles.basis


@pytest.mark.parametrize("bits", [2, 5, 8])
def test_planes_have_the_size_of_the_file(bits: int) -> None:
    target = find_target("gap9-ne16")
    graph = lower(quantized(digits().main, target, parse_settings(target.settings, (f"weight_bits={bits}",))), "gap9")
    entries = json.loads(target.emit(graph, digits())["quantization.json"])["artefacts"]["hardware"]["entries"]
    sizes = {e["node"]: e["size_bytes"] for e in entries if e["kind"] == "weights_planes"}
    filters = {n.name: filter_of(graph, i) for i, n in enumerate(graph.nodes) if is_on_ne16(n)}
    assert len(sizes) > 2
    assert sizes == {name: layer.planes_bytes for name, layer in filters.items()}


@pytest.mark.parametrize("name", sorted({*target_names()} - {"gap9-ne16", "gap9-sq8"}))
def test_other_targets_say_why_not(name: str) -> None:
    found = estimate(digits(), name).estimate
    assert (found.cycles.grade, found.layers, dict(found.totals)) == (Grade.NOT_OFFERED, (), {})
    assert len(found.cycles.basis) > 20


def test_a_figure_without_its_error_cannot_be_made() -> None:
    for value, grade, low, high, basis in (
        (5.0, Grade.FITTED, None, None, "b"),
        (5.0, Grade.EXACT, 4.0, 6.0, "b"),
        (5.0, Grade.FITTED, 6.0, 7.0, "b"),
        (5.0, Grade.NOT_OFFERED, 5.0, 5.0, "b"),
        (None, Grade.NOT_OFFERED, None, None, ""),
        (5.0, Grade.LOWER_BOUND, 5.0, 6.0, "b"),
    ):
        with pytest.raises(GraphError, match="must carry its error"):
            Figure(value, "cycles", grade, low, high, basis)


def test_sums_have_the_worst_grade() -> None:
    parts = [exact(10, "cycles", "rtl"), within(20, "cycles", Grade.FITTED, 0.5, 2, "fit")]
    found = total(parts, "cycles", "both")
    assert (found.value, found.grade, found.low, found.high) == (30, Grade.FITTED, 20, 50)
    with pytest.raises(GraphError, match="not offered"):
        total([*parts, not_offered("cycles", "no log")], "cycles", "all")


def test_the_model_inside_the_package() -> None:
    found: Estimate = estimate(digits(), "gap9-ne16").estimate
    assert found.cycles.grade in (Grade.SINGLE_CASE, Grade.NOT_OFFERED)
    assert {layer.bound for layer in found.layers} - {""} <= {
        "compute",
        "features",
        "weights",
        "outputs",
        "DMA of weights",
        "set-up",
    }
