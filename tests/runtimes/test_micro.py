"""Every rule of `tflm` against tflite-micro itself, and the arena that it reports."""

from __future__ import annotations

import pytest

from tests.runtimes.cases import CASES, Case
from tests.support.data import data_path
from tflq.api.micro_arena import describe_arena
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.oracle.micro_arena import measure_arena
from tflq.oracle.package import MICRO, is_installed

pytestmark = pytest.mark.skipif(not is_installed(MICRO), reason="tflite-micro is not installed: tflq[tflite-micro]")


@pytest.fixture(scope="module")
def micro():
    with Oracle(MICRO) as oracle:
        yield oracle


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_equals_tflite_micro(micro: Oracle, case: Case) -> None:
    (theirs,) = micro.run(case.content, case.inputs, tensors="outputs").outputs
    ours = Engine(case.graph, "tflm").run(case.inputs)[case.graph.outputs[0]]
    assert ours.tolist() == theirs.tolist()


def test_the_arena_of_a_network() -> None:
    content = data_path("models", "kws_ref_model.tflite").read_bytes()
    arena = measure_arena(content)
    assert arena.total == arena.head + arena.tail
    assert arena.head == 16000
    sentence = describe_arena("tflm", CASES[0].graph, {"model.tflite": content})
    assert f"uses {arena.total} bytes" in sentence
    assert describe_arena("tflite", CASES[0].graph, {"model.tflite": content}) == ""
