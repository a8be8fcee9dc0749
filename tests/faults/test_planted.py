"""A share of the planted faults; scripts/faults runs all of them over all networks and targets.

Source: docs/guides/diagnosis.md.
"""

from __future__ import annotations

from tests.faults.score import accused, outcomes

NETWORKS, TARGETS = ("digits", "random0"), ("tflite", "gap9-ne16", "tpu-mlir")
SHARE = (
    *("sample before", "CHW", "input sign bit", "bias missing", "kernel turned", "shift", "accumulator wraps"),
    *("rounding half up", "halves", "dead", "one weight's bit", "output zero point"),
    *("NC4HW4", "row pitch", "weights of 4 bits", "last products lost", "window a row off", "first sample in all"),
)
"""One kind for each part of docs/guides/diagnosis.md: the suite must stay quick."""
FEW = ("CHW", "shift", "one weight's bit", "input sign bit", "last products lost")


def test_the_layer_stands_first_and_the_cause_is_named(quick: bool) -> None:
    """Among all hypotheses; tests/diagnosis/test_hypotheses.py has each by itself."""
    faults = FEW if quick else SHARE
    found = list(outcomes(41, len(faults), NETWORKS, TARGETS, faults))
    assert {o.fault for o in found} == set(faults)
    assert [o for o in found if not o.layer or o.cause != "right"] == []


def test_sound_dumps_are_not_accused() -> None:
    assert list(accused(47, 6, NETWORKS, TARGETS)) == []
