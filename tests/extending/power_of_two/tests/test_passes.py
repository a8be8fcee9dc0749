"""The pass as text before and after."""

from __future__ import annotations

from tflq_power_of_two.passes import EXTRA

from tflq.graph.parsing import parse_graph
from tflq.graph.rewriting import rewrite_graph

BEFORE = """
graph {
  input %x: float32[1,4]
  %a: float32[1,4] = neg(%x)
  %b: float32[1,4] = neg(%a)
  %y: float32[1,4] = abs(%b)
  output %y
}
"""
AFTER = """graph "" {
  input %x: float32[1,4]
  %y: float32[1,4] = abs(%x) "ABS_0_2"
  output %y
}
"""


def test_remove_double_negation() -> None:
    assert str(rewrite_graph(parse_graph(BEFORE), [EXTRA.rewrite])) == AFTER
