"""The operator as text before and after, its values, its file and its place in a pattern."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.converters import tflite
from tflq.errors import GraphError
from tflq.graph import Model
from tflq.graph.operators import Trait
from tflq.graph.parsing import parse_graph
from tflq.graph.rewriting import GraphEditor, Value, find_matches, op
from tflq.interpreter import Engine
from tflq.interpreter.execution.settle import settle

BEFORE = """graph magnitude {
  input %x: float32[2,3]
  %y: float32[1,1] = stablehlo_abs(%x) "MAGNITUDE"
  output %y
}
"""
AFTER = BEFORE.replace("[1,1]", "[2,3]")


def test_its_shape_follows_from_its_traits() -> None:
    assert str(settle(parse_graph(BEFORE)).graph) == AFTER


def test_its_kernel_runs() -> None:
    x = np.array([[[-1.5, 0.0, 2.0], [3.0, -0.25, -8.0]]], np.float32)
    (y,) = Engine(parse_graph(AFTER)).run([x]).values()
    assert y.tolist() == [[[1.5, 0.0, 2.0], [3.0, 0.25, 8.0]]]


def test_a_file_states_it(tmp_path: Path) -> None:
    path = tmp_path / "magnitude.tflite"
    tflite.write_model(Model([parse_graph(AFTER)]), path)
    assert [node.operator for node in tflite.read_model(str(path)).main.nodes] == ["stablehlo_abs"]


def test_a_file_with_another_number_of_operands_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    tflite.write_model(Model([parse_graph(AFTER.replace("(%x)", "(%x, %x)"))]), path)
    with pytest.raises(GraphError, match="found 2 inputs; stablehlo_abs has 1"):
        tflite.read_model(str(path))


def test_a_pattern_of_its_trait_matches_it() -> None:
    editor = GraphEditor(parse_graph(AFTER))
    assert [match.root.name for match in find_matches(editor, op(Trait.UNARY, Value("x")))] == ["MAGNITUDE"]
