"""`--engine auto`: NE16 or the cluster by the estimate, where the evidence decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.data import data_path
from tests.support.faults import DIGITS
from tests.support.gap9_nets import Net
from tflq.converters.engines import EngineChoices, saved_cycles
from tflq.converters.estimate import (
    Estimate,
    Figure,
    Grade,
    LayerEstimate,
    at_least,
    exact,
    not_offered,
    total,
    within,
)
from tflq.errors import OptionError, UsageError


def chosen(model: Path | str, *settings: str, layers: tuple[str, ...] = ()) -> tuple[tflq.ConvertResult, EngineChoices]:
    target = tflq.TargetOptions("gap9-ne16", settings, layers)
    found = tflq.convert(model, target, samples=tflq.SampleOptions(count=1), engine="auto")
    assert found.engines is not None
    return found, found.engines


def test_the_published_submission_is_found() -> None:
    """GreenWaves ran KWS' first convolution on the cluster: 175 823 cycles at 5 bits."""
    path = data_path("models", "kws_ref_model.tflite")
    found, engines = chosen(path, "weight_bits=5")
    assert [layer.setting for layer in engines.moved] == ["0:use_ne16=false"]
    assert engines.before.grade is Grade.LOWER_BOUND
    assert round(engines.after.value or 0) == 175823
    saved = engines.moved[0].saved
    assert (saved.grade, round(saved.value or 0)) == (Grade.LOWER_BOUND, 219924 - round(320000 / 4.7))
    named = tflq.TargetOptions("gap9-ne16", ("weight_bits=5",), ("0:use_ne16=false",))
    same = tflq.convert(path, named, samples=tflq.SampleOptions(count=1))
    assert same.engines is None
    assert found.artifacts == same.artifacts


def test_the_column_names_the_engine_that_runs_a_layer() -> None:
    """A rectifier is the clip of its filter on NE16; additions and pools run on the cluster in NE16's types."""
    net = Net()
    y = net.conv(net.x, (0.0, 2.0), activation="relu")
    z = net.binary("add", y, net.x, (0.0, 3.0), "relu")
    found = tflq.convert(net.model(net.pool(z, (0.0, 3.0))), "gap9-ne16", samples=tflq.SampleOptions(count=1))
    engines = [(row["operator"], row["engine"]) for row in found.rows() if row["operator"] != "quantize"]
    assert engines == [
        ("conv_2d", "ne16"),
        ("relu", "ne16"),
        ("add", "cluster"),
        ("relu", "cluster"),
        ("max_pool_2d", "cluster"),
    ]


def test_what_the_user_names_stays() -> None:
    path = data_path("models", "kws_ref_model.tflite")
    for rule in ("0:use_ne16=true", "0:weight_bits=4"):
        _, engines = chosen(path, layers=(rule,))
        assert engines.moved == ()
        assert engines.before == engines.after
    first = engines.layers[0]
    assert (first.name, first.engine) == ("CONV_2D_0_0", "NE16")
    assert first.saved.basis.startswith("the cluster does not take it: ")


def test_without_evidence_nothing_moves() -> None:
    found, engines = chosen(DIGITS)
    assert len(engines.layers) == 6
    assert all(layer.engine == "NE16" and not layer.saved.is_offered for layer in engines.layers)
    assert found.artifacts == tflq.convert(DIGITS, "gap9-ne16", samples=tflq.SampleOptions(count=1)).artifacts
    assert found.to_dict()["engines"]


def test_text_json_and_page(tmp_path: Path) -> None:
    path = data_path("models", "kws_ref_model.tflite")
    arguments = ("convert", path, "-t", "gap9-ne16", "--engine", "auto", "-n", 1, "--report", tmp_path / "r.html")
    text = command(*arguments, "-o", tmp_path / "a")
    assert "moved: CONV_2D_0_0 to the cluster (--layer 0:use_ne16=false); before: >= 343,752 cycles" in text.out
    assert "9 layers of 10 stay: the other engine's cycles are not offered" in text.out
    assert "CONV_2D_0_0 to the cluster" in (tmp_path / "r.html").read_text(encoding="utf-8")
    engines = command(*arguments, "-o", tmp_path / "b", "--json", "--force").json["engines"]
    assert engines["layers"][0]["saved"]["low"] == engines["layers"][0]["saved"]["value"] == 151838.9
    assert engines["before"]["grade"] == "lower bound"


def test_refused() -> None:
    with pytest.raises(OptionError, match="target gap9-sq8 has a single engine; engine auto needs one of gap9-ne16"):
        tflq.convert(DIGITS, "gap9-sq8", engine="auto")
    with pytest.raises(UsageError, match="engine 'fast': allowed is auto"):
        tflq.convert(DIGITS, "gap9-ne16", engine="fast")
    with pytest.raises(UsageError, match="engine auto needs a single target"):
        tflq.convert_all(DIGITS, engine="auto")


def layer(name: str, cycles: Figure, jobs: Figure | None = None) -> LayerEstimate:
    none = exact(0, "bytes", "counted")
    return LayerEstimate(
        0, name, "conv_2d", "NE16", exact(1, "MACs", "counted"), cycles, jobs, None, "", none, none, ""
    )


def estimate(*layers: LayerEstimate) -> Estimate:
    offered = all(found.cycles.is_offered for found in layers)
    cycles = total((found.cycles for found in layers), "cycles", "b") if offered else not_offered("cycles", "b")
    return Estimate(cycles, layers, {}, {}, ())


def test_savings_are_between_the_ends_of_what_changes() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        same, old, new, more = (
            within(float(rng.integers(1, 1000)), "cycles", Grade.FITTED, rng.uniform(0.5, 1), rng.uniform(1, 2), "b")
            for _ in range(4)
        )
        found = saved_cycles(
            estimate(layer("a", same), layer("b", old)),
            estimate(layer("q", more), layer("a", same), layer("b", new)),
        )
        ends = (old.low or 0, old.high or 0, (new.low or 0) + (more.low or 0), (new.high or 0) + (more.high or 0))
        assert (found.low, found.high) == (ends[0] - ends[3], ends[1] - ends[2])
        assert found.value == (old.value or 0) - ((new.value or 0) + (more.value or 0))


def test_savings_without_a_total() -> None:
    unknown, jobs = layer("a", not_offered("cycles", "taps"), exact(500, "cycles", "rtl")), exact(120, "cycles", "log")
    found = saved_cycles(estimate(unknown), estimate(layer("a", jobs)))
    assert (found.grade, found.value) == (Grade.LOWER_BOUND, 380)
    assert saved_cycles(estimate(layer("a", jobs)), estimate(unknown)).basis == "a: taps"
    tiled = layer("a", at_least(90, "cycles", "tiled"))
    assert not saved_cycles(estimate(layer("a", jobs)), estimate(tiled)).is_offered
    assert saved_cycles(estimate(tiled), estimate(layer("a", jobs))).low == -30
