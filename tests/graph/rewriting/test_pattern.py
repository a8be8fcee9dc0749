"""Patterns: graphs as text before and after a rewrite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.graph import Attributes, Graph, Node
from tflq.graph.operators import Trait
from tflq.graph.parsing import parse_graph
from tflq.graph.printing import format_graph
from tflq.graph.rewriting import (
    ANY,
    Constant,
    GraphEditor,
    Match,
    Op,
    Value,
    find_matches,
    is_near,
    one_of,
    op,
    replace_root,
    rewrite,
)

X = Value("x")
SILU = op("mul", X, op("logistic", X))


def graph_of(lines: str) -> Graph:
    return parse_graph("graph g {\n input %x: float32[1,4]\n" + lines + "\n output %y\n}\n")


def node_lines(lines: str, pattern: Op, operator: str = "new") -> list[str]:
    """Return `result = operator(operands)` of each node after the matches of a pattern became `operator(%x)`."""
    editor = GraphEditor(graph_of(lines))
    rewrite(editor, pattern, lambda _, match: replace_root(match, operator, "x"))
    text = format_graph(editor.graph()).replace(": float32[1,4]", "")
    return [line.partition(' "')[0].partition(" {")[0].strip() for line in text.splitlines() if "(" in line]


BEFORE_SILU = " %s: float32[1,4] = logistic(%x)\n "


@pytest.mark.parametrize("operands", ["%x, %s", "%s, %x"])
def test_operands_of_a_commutative_operator_match_in_either_order(operands: str) -> None:
    assert node_lines(f"{BEFORE_SILU}%y: float32[1,4] = mul({operands})", SILU, "silu") == ["%y = silu(%x)"]


def test_operands_of_another_operator_keep_their_order() -> None:
    pattern = op("sub", X, op("logistic", X))
    assert node_lines(f"{BEFORE_SILU}%y: float32[1,4] = sub(%x, %s)", pattern) == ["%y = new(%x)"]
    assert node_lines(f"{BEFORE_SILU}%y: float32[1,4] = sub(%s, %x)", pattern) == [
        "%s = logistic(%x)",
        "%y = sub(%s, %x)",
    ]


def test_one_name_denotes_one_tensor() -> None:
    lines = " %z: float32[1,4] = abs(%x)\n %s: float32[1,4] = logistic(%x)\n %y: float32[1,4] = mul(%z, %s)"
    assert node_lines(lines, SILU)[-1] == "%y = mul(%z, %s)"


def test_a_shared_part_stays_and_an_unshared_one_prevents_the_match() -> None:
    lines = f"{BEFORE_SILU}%m: float32[1,4] = mul(%x, %s)\n %y: float32[1,4] = add(%m, %s)"
    assert node_lines(lines, SILU) == ["%s = logistic(%x)", "%m = mul(%x, %s)", "%y = add(%m, %s)"]
    shared = op("mul", X, op("logistic", X, shared=True))
    assert node_lines(lines, shared) == ["%s = logistic(%x)", "%m = new(%x)", "%y = add(%m, %s)"]


def test_an_output_of_the_graph_is_a_use() -> None:
    lines = f"{BEFORE_SILU}%y: float32[1,4] = mul(%x, %s)\n output %s"
    assert node_lines(lines, SILU)[-1] == "%y = mul(%x, %s)"


@pytest.mark.parametrize(
    "rest",
    [
        "%y: float32[1,4] = mul(%x, %s)\n output %s",
        "%m: float32[1,4] = mul(%x, %s)\n %y: float32[1,4] = add(%m, %s)",
        '%y: float32[1,4] = mul(%x, %s) {fused_activation_function="relu"}',
        "%y: float32[1,4] = sub(%x, %s)",
        "%y: float32[1,4] = mul(%s, %s)",
    ],
)
def test_a_place_that_differs_stays(rest: str) -> None:
    graph = graph_of(BEFORE_SILU + rest)
    editor = GraphEditor(graph)
    rewrite(editor, SILU, lambda _, match: replace_root(match, "silu", "x"))
    assert editor.graph() == graph


def test_an_optional_node_may_be_missing() -> None:
    pattern = op("relu", op("reshape", op("abs", X), optional=True))
    without = " %a: float32[1,4] = abs(%x)\n %y: float32[1,4] = relu(%a)"
    between = " %a: float32[1,4] = abs(%x)\n %r: float32[1,4] = reshape(%a)\n %y: float32[1,4] = relu(%r)"
    assert node_lines(without, pattern) == node_lines(between, pattern) == ["%y = new(%x)"]


@pytest.mark.parametrize(
    ("constant", "matches"),
    [
        ("float32[] = 6.0", True),
        ("float32[1] = [6.0000005]", True),
        ("float32[] = 6.00001", False),
        ("float32[] = 3", True),
        ("float32[2] = [6, 6]", False),
        ("float32[0] = empty(0,)", False),
        ("float32[] = nan", False),
        ("float32[] = inf", False),
        ('string[1] = [b"6"]', False),
        ("complex64[] = complex(6, 0)", False),
    ],
)
def test_constants_match_within_a_distance(constant: str, matches: bool) -> None:
    pattern = op("mul", X, Constant("c", near=(3, 6)))
    lines = f" const %c: {constant}\n %y: float32[1,4] = mul(%c, %x)"
    assert (node_lines(lines, pattern) == ["%y = new(%x)"]) == matches


def test_all_elements_of_a_constant_equal_one_allowed_value() -> None:
    assert is_near(np.array([6, 6]), 3, 6)
    assert not is_near(np.array([3, 6]), 3, 6)
    pattern = op("mul", X, Constant("c", near=(6,), single=False))
    assert node_lines(" const %c: float32[2] = [6, 6]\n %y: float32[1,4] = mul(%x, %c)", pattern) == ["%y = new(%x)"]


def test_a_match_has_constants_nodes_and_inner_nodes() -> None:
    lines = " const %c: float32[] = 0.5\n %a: float32[1,4] = abs(%x)\n %y: float32[1,4] = mul(%c, %a)"
    editor = GraphEditor(graph_of(lines))
    (match,) = find_matches(editor, op("mul", op("abs", X, name="abs"), Constant("c"), name="root"))
    assert match.number("c") == 0.5
    assert match.nodes == {"abs": editor.nodes[0], "root": editor.nodes[1]}
    assert (match.root, match.inner) == (editor.nodes[1], (editor.nodes[0],))
    assert {name: editor.tensors[t].name for name, t in match.values.items()} == {"x": "x", "c": "c"}


def test_traits_and_names_of_operators() -> None:
    lines = " %a: float32[1,4] = relu6(%x)\n %b: float32[1,4] = exp(%a)\n %y: float32[1,4] = tanh(%b)"
    assert node_lines(lines, op(Trait.RECTIFIER, X)) == ["%a = new(%x)", "%b = exp(%a)", "%y = tanh(%b)"]
    assert node_lines(lines, op(Trait.UNARY, X)) == ["%a = new(%x)", "%b = new(%a)", "%y = new(%b)"]
    assert node_lines(lines, op(("exp", "tanh"), X)) == ["%a = relu6(%x)", "%b = new(%a)", "%y = new(%b)"]


def test_the_first_alternative_that_matches_counts() -> None:
    pattern = op("relu", one_of(op("abs", X), op("neg", X), X))
    for inner in ("abs", "neg"):
        assert node_lines(f" %a: float32[1,4] = {inner}(%x)\n %y: float32[1,4] = relu(%a)", pattern) == ["%y = new(%x)"]
    other = " %a: float32[1,4] = exp(%x)\n %y: float32[1,4] = relu(%a)"
    assert node_lines(other, pattern) == ["%a = exp(%x)", "%y = new(%a)"]


@pytest.mark.parametrize(("required", "matches"), [("none", False), ("relu", True), ("relu6", False), (ANY, True)])
def test_fused_activations(required: str, matches: bool) -> None:
    lines = ' %y: float32[1,4] = add(%x, %x) {fused_activation_function="relu"}'
    assert (node_lines(lines, op("add", X, X, activation=required)) == ["%y = new(%x)"]) == matches


def test_conditions_and_attributes() -> None:
    lines = " %y: float32[1,4] = leaky_relu(%x) {alpha=0.5}"
    assert node_lines(lines, op("leaky_relu", X, alpha=0.5)) == ["%y = new(%x)"]
    assert node_lines(lines, op("leaky_relu", X, alpha=0.25)) == ["%y = leaky_relu(%x)"]
    assert node_lines(lines, op("leaky_relu", X, where=lambda node: not node.attributes)) == ["%y = leaky_relu(%x)"]
    wide = Value("x", where=lambda tensor: tensor.shape == (1, 8))
    assert node_lines(lines, op("leaky_relu", wide)) == ["%y = leaky_relu(%x)"]


def test_an_absent_operand_matches_no_value() -> None:
    lines = " %y: float32[1,4] = fully_connected(%x, %x, _)"
    assert node_lines(lines, op("fully_connected", X, X, Value("bias"))) == ["%y = fully_connected(%x, %x, _)"]
    assert node_lines(lines, op("fully_connected", X, X)) == ["%y = new(%x)"]


def test_a_place_that_build_declines_stays() -> None:
    graph = graph_of(" %y: float32[1,4] = abs(%x)")
    editor = GraphEditor(graph)

    def decline(editor: GraphEditor, match: Match) -> Node | None:
        return None

    rewrite(editor, op("abs", X), decline)
    assert editor.graph() == graph


def test_a_replaced_root_keeps_name_results_and_arithmetic_alone() -> None:
    """Version, options and params belong to the operator that was there."""
    old = Node("custom", (0,), (1,), name="root", version=3, custom_code="Mine", custom_options=b"x", params=1)
    old = replace(old, arithmetic="float", extra=2, intermediates=(0,))
    root = replace_root(Match(old, {"x": 0}), "tanh", "x", alpha=0.5)
    assert root == Node("tanh", (0,), (1,), Attributes({"alpha": 0.5}), "root", arithmetic="float")
