"""The comparison names the planted fault first: layer, channel, and the likely cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.faults import (
    CHANNEL,
    LAYER,
    NODE,
    corrupted_weights,
    digits,
    with_output_scale,
    wrong_multiplier,
)
from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.diagnosis.compare import Comparison, Running, compare_sides, dump_of, match
from tflq.diagnosis.compare.params import weight_figures
from tflq.diagnosis.compare.tally import Tally
from tflq.diagnosis.dumps.wanted import Archive, Stored
from tflq.diagnosis.explain import Explainer, side_by_side
from tflq.graph import Affine, DType, Model, Tensor
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.tflite.quantized_convolution import QuantizedConvolution
from tflq.parallel.executions import Execution, as_is, for_target, in_float
from tflq.report.comparison import comparison_verdict
from tflq.sampling import GivenSamples

IMAGES = np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"][:40].reshape(40, 1, 8, 8, 1)
SAMPLES = GivenSamples([IMAGES])


def running(execution: Execution) -> Running:
    return Running(execution, SAMPLES, execution.name)


def target(model: Model, name: str) -> Execution:
    found = find_target(name)
    return for_target(model.main, found, parse_settings(found.settings, (), ()))


def compare(first: Execution, second: Execution, isolated: bool = False) -> Comparison:
    return compare_sides(running(first), running(second), 40, isolated=isolated)


def wrong_integer() -> Execution:
    """The lowered graph of the sound model, one channel's multiplier half as large."""
    graph = lower(digits().main)
    layer = graph.nodes[LAYER].params
    assert isinstance(layer, QuantizedConvolution)
    assert layer.constants is not None
    multiplier = np.array(layer.rule.multiplier)
    multiplier[CHANNEL] //= 2
    rule = replace(layer.rule, multiplier=multiplier)
    rescale = replace(layer.constants.rescale, rule=rule, step_map=None)
    changed = replace(layer, rule=rule, constants=replace(layer.constants, rescale=rescale))
    graph.nodes[LAYER] = replace(graph.nodes[LAYER], params=changed)
    return replace(as_is(digits()), engine=Engine(graph))


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize(
    ("execution", "field"),
    [
        (lambda: as_is(corrupted_weights()), "weights"),
        (lambda: as_is(wrong_multiplier()), "multiplier"),
        (wrong_integer, "multiplier"),
        (lambda: target(corrupted_weights(), "gap9-ne16"), "weights"),
    ],
)
def test_a_planted_integer_is_named_first(execution, field: str, isolated: bool) -> None:
    first = execution()
    second = target(digits(), "gap9-ne16") if first.target else as_is(digits())
    found = compare(first, second, isolated)
    assert not found.is_equal
    worst = found.ranking[0]
    assert (worst.node, worst.channel, worst.group) == (NODE, CHANNEL, 0)
    assert worst.cause is not None
    assert worst.cause.words.startswith(f"{field} of channel {CHANNEL} differs")
    assert found.diverging[0].node == NODE
    assert [c for c, _, _ in worst.figures.channels] == [CHANNEL]
    assert not isolated or len(found.diverging) == 1


@pytest.mark.parametrize("model", [corrupted_weights, wrong_multiplier])
def test_a_dump_of_the_sound_model_names_the_layer_and_channel(model) -> None:
    sound = running(as_is(digits()))
    arrays = sound.take(0, 40, sound.columns)
    dump = dump_of(Archive("board", tuple(Stored(name, array) for name, array in arrays.items())), sound)
    found = compare_sides(running(as_is(model())), dump, 40)
    worst = found.ranking[0]
    assert (worst.node, worst.channel, worst.group) == (NODE, CHANNEL, 1)
    assert worst.cause is not None
    assert worst.cause.words.startswith("its inputs are equal, its result is not: 1 channel differs")
    assert compare_sides(running(as_is(digits())), dump, 40).is_equal
    turned = compare_sides(dump, running(as_is(model())), 40)
    assert [t.node for t in turned.ranking] == [t.node for t in found.ranking]
    assert turned.ranking[0].channel == CHANNEL


@pytest.mark.parametrize(
    ("factor", "kind", "words"),
    [(0.25, "saturation", "saturation: "), (8.0, "range", "range too wide: ")],
)
def test_a_range_that_does_not_fit_is_named(factor: float, kind: str, words: str) -> None:
    for isolated in (False, True):
        worst = compare(as_is(with_output_scale(factor)), in_float(digits()), isolated).ranking[0]
        assert worst.node == NODE
        assert worst.cause is not None
        assert (worst.cause.kind, worst.cause.words.startswith(words)) == (kind, True)


@pytest.mark.parametrize(
    ("factor", "effect", "contrary"),
    [(0.25, "cannot hold the reference's values", "too wide"), (8.0, "has steps that are too large", "cannot hold")],
)
def test_a_range_is_not_called_too_wide_and_too_narrow(factor: float, effect: str, contrary: str) -> None:
    found = compare(as_is(with_output_scale(factor)), in_float(digits()), False)
    spoiled = [t.cause.words for t in found.ranking if t.cause is not None and t.cause.kind == "input"]
    assert f"its input, from {NODE}, {effect}" in spoiled
    words = [t.cause.words for t in found.ranking if t.cause is not None]
    assert not [text for text in words if contrary in text]
    assert not found.is_rounding


def test_differences_that_are_only_rounding_need_no_fix() -> None:
    found = compare(as_is(digits()), in_float(digits()), False)
    assert not found.is_equal
    assert found.is_rounding
    verdict = comparison_verdict(found)
    assert (verdict.word, verdict.number, verdict.advice) == ("rounding only", len(found.diverging), "nothing to fix")
    same = compare(as_is(digits()), as_is(digits()), False)
    assert not same.is_rounding


def test_weights_times_a_factor_are_named_before_bits() -> None:
    worst = compare(as_is(wrong_multiplier()), in_float(digits()), isolated=True).ranking[0]
    assert worst.cause is not None
    assert (worst.node, worst.cause.kind) == (NODE, "factors")
    assert worst.cause.words.startswith(f"the weights of channel {CHANNEL} are 1.5 times the reference's")


def test_channels_that_one_scale_leaves_no_steps() -> None:
    rng = np.random.default_rng(5)
    real = rng.normal(0, 1, (6, 30)) * np.array([1, 1, 0.01, 1, 1, 0.02])[:, None]
    scale = np.abs(real).max() / 127
    data = np.rint(real / scale).astype(np.int8)
    ours = Tensor("w", real.shape, DType.INT8, quantization=Affine.per_tensor(scale, 0), data=data)
    theirs = Tensor("w", real.shape, DType.FLOAT32, data=real.astype(np.float32))
    found = weight_figures(ours, theirs, 0)
    assert found is not None
    assert (found.narrow, found.factors) == ((2, 5), ())
    doubled = replace(ours, quantization=Affine.per_tensor(2.1 * scale, 0))
    found = weight_figures(doubled, theirs, 0)
    assert found is not None
    assert {c for c, r in found.factors if abs(r - 2.1) < 0.05} >= {0, 1, 3, 4}


def test_few_weight_bits_are_named() -> None:
    found = find_target("gap9-ne16")
    settings = parse_settings(found.settings, (), (f"{LAYER}:weight_bits=2",))
    worst = compare(for_target(digits().main, found, settings), in_float(digits()), isolated=True).ranking[0]
    assert (worst.node, worst.cause.kind if worst.cause else "") == (NODE, "weights")


def test_a_model_equals_itself_in_chunks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(as_is(corrupted_weights()), in_float(digits()))
    monkeypatch.setattr("tflq.diagnosis.compare.comparison.CHUNK_BYTES", 1)
    parts = compare(as_is(corrupted_weights()), in_float(digits()))
    for a, b in zip(whole.tensors, parts.tensors, strict=True):
        assert (a.figures.differing, a.figures.histogram) == (b.figures.differing, b.figures.histogram)
        assert (a.figures.first_place, a.figures.worst_place) == (b.figures.first_place, b.figures.worst_place)
        assert a.figures.sqnr_db == pytest.approx(b.figures.sqnr_db)
    assert compare(as_is(digits()), as_is(digits())).is_equal


def test_figures_of_a_small_tensor() -> None:
    tensor = Tensor("t", (4,), DType.INT8, Affine.per_tensor(np.float32(0.5), 0))
    tally = Tally(tensor, tensor)
    tally.add(np.array([[127, 2, -128, 4]], np.int8), np.array([[127, 3, -100, 4]], np.int8), 5)
    figures = tally.figures()
    assert (figures.elements, figures.differing, figures.largest, figures.lsb) == (4, 2, 28.0, 0.5)
    assert figures.histogram == (1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0)
    assert figures.channels == ((2, 28.0, 1), (1, 1.0, 1))
    assert figures.saturated == 0.5
    assert figures.unused == 0.0
    a, b = np.array([127.0, 2, -128, 4]), np.array([127.0, 3, -100, 4])
    assert figures.sqnr_db == pytest.approx(10 * np.log10((b @ b) / ((a - b) @ (a - b))))
    assert figures.cosine == pytest.approx(a @ b / np.sqrt((a @ a) * (b @ b)))
    assert figures.rms_lsb == pytest.approx(np.sqrt((1 + 28**2) / 4))
    assert figures.first_place is not None
    assert (figures.first_place.sample, figures.first_place.index) == (5, (1,))


def test_a_clipped_value_counts_only_where_the_reference_lies_beyond() -> None:
    tensor = Tensor("t", (3,), DType.INT8, Affine.per_tensor(np.float32(1), -128))
    tally = Tally(tensor, Tensor("t", (3,), DType.FLOAT32))
    tally.add(np.array([[127, 127, -128]], np.int8), np.array([[300.0, 255.2, -50.0]], np.float32), 0)
    figures = tally.figures()
    assert figures.clipped == pytest.approx(1 / 3)  # a ReLU's floor is no saturation
    assert 0.4 < figures.clipped_noise < 1.0


def test_a_targets_graph_matches_by_tensor_then_by_node() -> None:
    first, second = running(target(digits(), "gap9-ne16")), running(as_is(digits()))
    found = match(first.columns, second.columns)
    alone = [c.node for c in second.columns if c.name in found.second_only]
    assert alone == ["CONV_2D_0_2"], "GAP9 pools in front of its ReLU: what TFLite pools is nowhere in it"
    assert {"CONV_2D_0_0", "CONV_2D_0_2"} <= set(found.first_only)
    pairs = {m.first.node: m.second.node for m in found.matches}
    assert pairs["CONV_2D_0_0_activation"] == "CONV_2D_0_0"
    assert pairs["AVERAGE_POOL_2D_0_6"] == "AVERAGE_POOL_2D_0_6"
    assert pairs["CONV_2D_0_2_activation"] == "MAX_POOL_2D_0_3"


@pytest.mark.parametrize(("model", "label"), [(corrupted_weights, "weights"), (wrong_multiplier, "multiplier")])
def test_explanations_of_a_differing_element_part_at_the_fault(model, label: str) -> None:
    found = compare(as_is(model()), as_is(digits()))
    worst = found.ranking[0]
    place = worst.figures.worst_place
    assert place is not None
    both = []
    for execution in (as_is(model()), as_is(digits())):
        explainer = Explainer(execution.engine, [IMAGES[place.sample : place.sample + 1]], place.sample)
        both.append(explainer.explain(worst.match.first.index, place.index))
    assert [e.stored for e in both] == [place.first, place.second]
    found_pair = side_by_side(*both)
    parting = found_pair.parting
    assert parting is not None
    assert parting.label == label
    assert found_pair.words().startswith(f"they part at {label}")
