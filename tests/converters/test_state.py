"""Variables that nodes read: a target without state refuses them in one line."""

from __future__ import annotations

import pytest

from tests.support.data import data_path
from tests.support.rewriting import graph_text
from tflq.api.calibrate import calibrate
from tflq.api.read_model import read_model
from tflq.converters.passes.requirements import refuse_state
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target, problems_of
from tflq.errors import UnsupportedError
from tflq.graph import Graph
from tflq.graph.parsing import parse_graph

STATE = "input %x: float32[1,4]\ntensor %s: float32[1,4] variable"
READ = '%y: float32[1,4] = sub(%x, %s) {fused_activation_function="none"}\n'
WRITE = "%s: float32[1,4] variable = abs(%x)\n"
REASON = "it reads variable 's' of an earlier run; make it an input and an output"


def _graph(nodes: str) -> Graph:
    return parse_graph(graph_text(STATE, nodes))


@pytest.mark.parametrize("name", ["aipu", "onnx", "tpu-mlir", "openvino"])
def test_a_variable_of_an_earlier_run_is_refused(name: str) -> None:
    target = find_target(name)
    problems = problems_of(target, _graph(READ + WRITE), parse_settings(target.settings))
    assert problems == (f"operator 0 (sub 'SUB_0_0'): {REASON}",)


def test_a_variable_that_was_written_and_the_state_of_a_recurrent_layer_are_not_refused() -> None:
    graph = _graph(WRITE + READ)
    assert not refuse_state(graph)
    graph.nodes = [graph.nodes[1]]
    assert refuse_state(graph) == (f"operator 0 (sub 'SUB_0_1'): {REASON}",)
    graph.nodes = [parse_graph(graph_text(STATE, READ.replace("sub", "svdf"))).nodes[0]]
    assert not refuse_state(graph)


@pytest.mark.parametrize("name", ["gap9-sq8", "gap9-ne16"])
def test_an_expression_that_depends_on_itself_is_refused(name: str) -> None:
    """NNTool puts the maxima of two blocks into one expression, with a convolution between them."""
    target = find_target(name)
    model = calibrate(read_model(data_path("zoo", "mini", "nntool", "leaky_max_two_blocks.tflite")))
    with pytest.raises(UnsupportedError, match=r"^tensor 'add_3;.*' depends on itself: an expression of NNTool joins"):
        target.quantize(model.main, parse_settings(target.settings))


def test_a_variable_written_twice_and_one_that_is_only_an_output_are_refused() -> None:
    graph = _graph(WRITE + READ)
    graph.nodes = [graph.nodes[0], *graph.nodes]
    assert refuse_state(graph) == (
        "operator 1 (abs 'ABS_0_0'): it writes variable 's' a second time; write another tensor",
    )
    graph.nodes = []
    graph.outputs = tuple(graph.variables)
    assert refuse_state(graph) == ("output 's' is a variable that no operator writes; make it an input",)
