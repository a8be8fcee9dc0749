"""Each rewrite of TPU-MLIR's front end, as text before and after; what lies one step away stays.

The answers of the tool to the same patterns are recorded: tests/support/tpu_mlir_front_end.py.
"""

from __future__ import annotations

import pytest

from tests.converters.tpu_mlir.networks import rewritten
from tflq.converters.tpu_mlir.front_end import FRONT_END
from tflq.graph.parsing import parse_graph

CASES = {
    "align_sums": (
        """
  input %x: float32[1,12]
  input %z: float32[1,12]
  const %s: int32[1] = [12]
  %m: float32[1,12] = mul(%x, %z) "M"
  %r: float32[12] = reshape(%m, %s) "R"
  %y: float32[1,12] = add(%x, %r) "A"
  output %y""",
        """
  %m: float32[1,12] = mul(%x, %z) "M"
  %y: float32[1,12] = add(%x, %m) "A"
""",
    ),
    "remove_idle_moves": (
        """
  input %x: float32[1,12]
  const %s: int32[2] = [3, 4]
  const %t: int32[2] = [1, 12]
  const %o: int32[2] = [0, 1]
  %a: float32[3,4] = reshape(%x, %s) "R"
  %b: float32[1,12] = reshape(%a, %t) "S"
  %c: float32[1,12] = transpose(%b, %o) "T"
  %y: float32[1,12] = tanh(%c) "Y"
  output %y""",
        """
  %y: float32[1,12] = tanh(%x) "Y"
""",
    ),
    "merge_equal_nodes": (
        """
  input %x: float32[1,4]
  const %c: float32[] = 2.0
  const %d: float32[] = 2.0
  %a: float32[1,4] range(-9.0, 9.0) = mul(%x, %c) "A"
  %b: float32[1,4] range(-5.0, 5.0) = mul(%x, %d) "B"
  %y: float32[1,4] = sub(%a, %b) "Y"
  output %y""",
        """
  %a: float32[1,4] range(-9.0, 9.0) = mul(%x, %c) "A"
  %y: float32[1,4] = sub(%a, %a) "Y"
""",
    ),
    "flatten_concatenations": (
        """
  input %x: float32[1,2]
  input %z: float32[1,2]
  %a: float32[1,4] = concatenation(%x, %z) {axis=1} "A"
  %y: float32[1,6] = concatenation(%z, %a) {axis=-1} "Y"
  output %y""",
        """
  %y: float32[1,6] = concatenation(%z, %x, %z) {axis=-1} "Y"
""",
    ),
    "fuse_right_transpose": (
        """
  input %x: float32[1,3,4]
  input %z: float32[1,5,4]
  const %o: int32[3] = [0, 2, 1]
  %t: float32[1,4,5] = transpose(%z, %o) "T"
  %y: float32[1,3,5] = batch_matmul(%x, %t) "Y"
  output %y""",
        """
  %y: float32[1,3,5] = batch_matmul(%x, %z) {adj_y=True} "Y"
""",
    ),
    "split_products": (
        """
  input %x: float32[1,2]
  const %w: float32[3,2] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
  const %b: float32[3] = [7.0, 8.0, 9.0]
  const %o: int32[2] = [0, 1]
  const %z: int32[2] = [0, 0]
  const %two: int32[2] = [1, 2]
  const %one: int32[2] = [1, 1]
  %p: float32[1,3] range(-8.0, 8.0) = fully_connected(%x, %w, %b) "P"
  %u: float32[1,2] = slice(%p, %o, %two) "U"
  %v: float32[1,1] = slice(%p, %z, %one) "V"
  %y: float32[1,2] = add(%u, %v) "Y"
  output %y""",
        """
  const %b_0: float32[1] = [7.0]
  const %b_1: float32[2] = [8.0, 9.0]
  const %w_0: float32[1,2] = [[1.0, 2.0]]
  const %w_1: float32[2,2] = [[3.0, 4.0], [5.0, 6.0]]
  %v: float32[1,1] range(-8.0, 8.0) = fully_connected(%x, %w_0, %b_0) {piece=1, whole=7} "P_1"
  %u: float32[1,2] range(-8.0, 8.0) = fully_connected(%x, %w_1, %b_1) {piece=2, whole=7} "P_2"
  %y: float32[1,2] = add(%u, %v) "Y"
""",
    ),
}
STAYS = {
    "align_sums": """
  input %x: float32[1,12]
  input %z: float32[1,12]
  const %s: int32[1] = [12]
  %r: float32[12] = reshape(%z, %s) "R"
  %y: float32[1,12] = mul(%x, %r) "A"
  output %y""",
    "remove_idle_moves": """
  input %x: float32[1,12]
  const %s: int32[2] = [3, 4]
  const %t: int32[2] = [12, 1]
  %a: float32[3,4] = reshape(%x, %s) "R"
  %b: float32[12,1] = reshape(%a, %t) "S"
  %y: float32[12,1] = tanh(%b) "Y"
  output %y""",
    "merge_equal_nodes": """
  input %x: float32[1,4]
  input %z: float32[1,4]
  %a: float32[1,4] = add(%x, %z) "A"
  %b: float32[1,4] = add(%z, %x) "B"
  %y: float32[1,4] = sub(%a, %b) "Y"
  output %y""",
    "flatten_concatenations": """
  input %x: float32[1,2]
  %a: float32[2,2] = concatenation(%x, %x) {axis=0} "A"
  %y: float32[2,4] = concatenation(%a, %a) {axis=1} "Y"
  output %y""",
    "fuse_right_transpose": """
  input %x: float32[1,3,4]
  input %z: float32[1,5,4]
  const %o: int32[3] = [0, 2, 1]
  %t: float32[1,4,5] = transpose(%z, %o) "T"
  %y: float32[1,3,5] = batch_matmul(%x, %t) "Y"
  output %y
  output %t""",
    "split_products": """
  input %x: float32[1,2]
  const %w: float32[3,2] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
  const %o: int32[2] = [0, 1]
  const %z: int32[2] = [0, 0]
  const %one: int32[2] = [1, 1]
  %p: float32[1,3] = fully_connected(%x, %w) "P"
  %u: float32[1,1] = slice(%p, %o, %one) "U"
  %v: float32[1,1] = slice(%p, %z, %one) "V"
  %y: float32[1,1] = add(%u, %v) "Y"
  output %y""",
}
RUN = {rewrite.name: rewrite.run for rewrite in FRONT_END}


def text_after(name: str, body: str) -> str:
    return str(rewritten(parse_graph(f"graph g {{{body}\n}}\n"), RUN[name]))


@pytest.mark.parametrize("name", CASES)
def test_rewrite(name: str) -> None:
    before, after = CASES[name]
    lines = [line.strip() for line in text_after(name, before).splitlines()]
    expected = [line.strip() for line in after.strip().splitlines()]
    nodes = [line for line in lines if line.startswith("%")]
    assert nodes == [line for line in expected if line.startswith("%")]
    assert set(expected) <= set(lines)


@pytest.mark.parametrize("name", STAYS)
def test_near_miss_stays(name: str) -> None:
    assert text_after(name, STAYS[name]) == str(parse_graph(f"graph g {{{STAYS[name]}\n}}\n"))


def test_order_of_the_table() -> None:
    """Idle moves are removed before twins are sought, and products are split last."""
    names = [rewrite.name for rewrite in FRONT_END]
    assert names.index("remove_idle_moves") < names.index("merge_equal_nodes") < names.index("fuse_silu")
    assert names[-1] == "split_products"
    assert all(rewrite.evidence and rewrite.source for rewrite in FRONT_END)
