"""Rules of runtimes without a package at hand, against their recorded results (record.py)."""

from __future__ import annotations

import json

import pytest

from tests.runtimes.cases import CASES
from tests.runtimes.record import FILE, digest
from tflq.interpreter import Engine

RECORDED = json.loads(FILE.read_text("utf-8"))
PAIRS = [(runtime, name) for runtime, digests in RECORDED.items() for name in digests]
NOT_MODELLED = {("tosa", f"resize_bilinear_int8_{n}") for n in ("00", "01", "10")} | {("tosa", "softmax_int16_int16")}
"""Rules that are not known (docs/guides/runtimes.md)."""
BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize(("runtime", "name"), PAIRS)
def test_a_layer_equals_its_record(runtime: str, name: str) -> None:
    case = BY_NAME[name]
    (result,) = Engine(case.graph, runtime).run(case.inputs, keep=case.graph.outputs).values()
    assert (digest(result) == RECORDED[runtime][name]) == ((runtime, name) not in NOT_MODELLED)


def test_each_runtime_has_records() -> None:
    assert {"tflm", "cmsis-nn", "cmsis-nn-single", "tosa"} == set(RECORDED)
    assert len(RECORDED["tflm"]) > 30
