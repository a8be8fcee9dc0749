"""The rewriter: chains after random changes, patterns as text before and after, and the trace of passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.tflite.options import options_class
from tflq.errors import GraphError, TflqError
from tflq.graph import Node, Tensor
from tflq.graph.dtypes import DType
from tflq.graph.operators import OPERATORS, Trait, has_trait, with_traits
from tflq.graph.parsing import parse_graph
from tflq.graph.printing import format_graph
from tflq.graph.rewriting import (
    ANY,
    Constant,
    ExtraPass,
    GraphEditor,
    Pass,
    Value,
    find_matches,
    graph_pass,
    one_of,
    op,
    passes,
    replace_root,
    rewrite,
    rewrite_graph,
    run_passes,
    trace_passes,
)
from tflq.schemas.tflite.enums import BuiltinOperator

X = Value("x")
SILU = op("mul", X, op("logistic", X))


def fuse_silu(editor):
    rewrite(editor, SILU, lambda _, match: replace_root(match, "silu", "x"))


def graph_of(body):
    return parse_graph(f"graph g {{\n{body}\n}}\n")


def rewritten(body, *rewrites):
    steps = tuple(Pass(f"step_{i}", run, "a test") for i, run in enumerate(rewrites))
    return format_graph(rewrite_graph(graph_of(body), steps))


def check_chains(editor):
    graph = editor.graph()
    writers, readers = graph.producers(), graph.consumers()
    for t in range(len(graph.tensors)):
        writer = editor.writer(t)
        assert writer == (graph.nodes[writers[t]] if t in writers else None)
        assert sorted(n.name for n in editor.readers(t)) == sorted(graph.nodes[i].name for i in readers.get(t, ()))
        assert editor.uses(t) == len(readers.get(t, ())) + graph.outputs.count(t)


@pytest.mark.parametrize("seed", range(4))
def test_chains_stay_valid_under_random_changes(seed):
    draw = np.random.default_rng(seed)
    editor = GraphEditor(graph_of("input %x: float32[2]\n%a: float32[2] = relu(%x)\noutput %a"))
    for step in range(60):
        nodes = editor.nodes
        computed = [*editor.inputs, *(t for n in nodes for t in n.outputs)]
        pick = nodes[draw.integers(len(nodes))]
        kind = draw.integers(6)
        if kind < 2:
            new = editor.add_tensor(Tensor(f"t{step}", (2,), DType.FLOAT32))
            operands = tuple(int(t) for t in draw.choice(computed, 2))
            editor.add(Node("add", operands, (new,), name="ADD"))
            editor.set_outputs((*editor.outputs, new))
        elif kind == 2:
            editor.insert_after(pick, Node("neg", (0,), (), name="NEG"), Tensor(f"i{step}", (2,), DType.FLOAT32))
        elif kind == 3:
            editor.insert_before(pick, 0, Node("abs", (0,), (), name="ABS"), Tensor(f"b{step}", (2,), DType.FLOAT32))
        elif kind == 4 and len(nodes) > 2:
            editor.bypass(pick)
        else:
            editor.replace(pick, replace(pick, name=f"{pick.name}_new"))
        check_chains(editor)
    editor.set_outputs(editor.outputs[-1:])
    editor.remove_dead()
    check_chains(editor)
    assert all(any(editor.uses(t) for t in node.outputs) for node in editor.nodes)


def test_a_valid_order_stays_and_a_broken_one_is_restored():
    body = "input %x: float32[1]\n%a: float32[1] = relu(%x)\n%b: float32[1] = neg(%x)\n%c: float32[1] = add(%a, %b)"
    graph = graph_of(f"{body}\noutput %c")
    editor = GraphEditor(graph)
    assert editor.graph() == graph
    new = editor.add_tensor(Tensor("d", (1,), DType.FLOAT32))
    editor.add(Node("exp", (1,), (new,), name="LATE"))  # at the end; its reader stands before it
    editor.set_input(editor.node("ADD_0_2"), 1, new)
    assert [n.operator for n in editor.graph().nodes] == ["relu", "neg", "exp", "add"]


def test_a_variable_is_read_before_it_is_written():
    body = "input %x: float32[1]\ntensor %v: float32[1] variable\n%y: float32[1] = sub(%x, %v)\noutput %y"
    editor = GraphEditor(graph_of(body))
    editor.add(Node("reshape", (0,), (1,), name="STORE"))
    assert [n.operator for n in editor.graph().nodes] == ["sub", "reshape"]


def test_names_are_unique_and_unknown_ones_refused():
    graph = graph_of("input %x: float32[1]\n%a: float32[1] = relu(%x)\noutput %a")
    graph.nodes.append(replace(graph.nodes[0], outputs=(graph.add_tensor(graph.tensors[1]),)))
    editor = GraphEditor(graph)
    assert [n.name for n in editor.nodes] == ["RELU_0_0", "RELU_0_0_1"]
    assert editor.graph() == graph  # GAP9 emits two nodes of one name
    editor.bypass(editor.node("RELU_0_0_1"))
    assert [n.name for n in editor.graph().nodes] == ["RELU_0_0"]
    with pytest.raises(GraphError, match="no node is called 'absent'"):
        editor.remove(Node("relu", (0,), (1,), name="absent"))


def test_many_insertions_at_one_place_keep_the_order():
    editor = GraphEditor(graph_of("input %x: float32[1]\n%a: float32[1] = relu(%x)\noutput %a"))
    first = editor.nodes[0]
    for i in range(200):
        editor.insert_after(first, Node("neg", (0,), (), name=f"N{i}"), Tensor(f"t{i}", (1,), DType.FLOAT32))
    assert [n.name for n in editor.graph().nodes] == ["RELU_0_0", *(f"N{i}" for i in reversed(range(200)))]


HEAD = "input %x: float32[2]\n%s: float32[2] = logistic(%x)\n"


@pytest.mark.parametrize("product", ["mul(%x, %s)", "mul(%s, %x)"])
def test_silu_in_either_order(product):
    text = rewritten(f"{HEAD}%y: float32[2] = {product}\noutput %y", fuse_silu)
    assert [line.strip() for line in text.splitlines() if "=" in line] == ['%y: float32[2] = silu(%x) "MUL_0_1"']


@pytest.mark.parametrize(
    "rest",
    [
        "%y: float32[2] = mul(%x, %s)\noutput %y\noutput %s",  # the gate is an output
        "%y: float32[2] = mul(%x, %s)\n%z: float32[2] = add(%y, %s)\noutput %z",  # another node reads it
        '%y: float32[2] = mul(%x, %s) {fused_activation_function="relu"}\noutput %y',
        "%y: float32[2] = sub(%x, %s)\noutput %y",
        "%y: float32[2] = mul(%s, %s)\noutput %y",  # the square of the gate
    ],
)
def test_silu_is_not_fused(rest):
    graph = graph_of(HEAD + rest)
    assert rewrite_graph(graph, (Pass("fuse_silu", fuse_silu, "a test"),)) == graph


def matches(body, pattern):
    return list(find_matches(GraphEditor(graph_of(body)), pattern))


def test_constants_traits_optional_nodes_and_alternatives():
    body = (
        "input %x: float32[1,2]\nconst %c: float32[] = 3.0\nconst %k: float32[2] = [1.0, 2.0]\n"
        "%r: float32[2] = reshape(%x)\n%a: float32[2] = add(%r, %c)\n%m: float32[2] = mul(%a, %k)\noutput %m"
    )
    reshaped = op(Trait.RESHAPE, X, optional=True)
    (match,) = matches(body, op("add", reshaped, Constant("c", near=(3.0,))))
    assert match.number("c") == 3.0
    assert [n.operator for n in match.inner] == ["reshape"]
    assert not matches(body, op("add", X, Constant("c", near=(2.0,))))
    assert not matches(body, op("mul", X, Constant("k")))  # two elements
    assert len(matches(body, op("mul", X, Constant("k", single=False)))) == 1
    assert len(matches(body, op(Trait.ARITHMETIC, X, Value("other")))) == 2
    (match,) = matches(
        body, op("mul", one_of(op("sub", X, Value("o")), op("add", X, Value("o"), name="sum")), Value("k"))
    )
    assert match.nodes["sum"].operator == "add"


def test_an_optional_node_may_be_missing():
    body = "input %x: float32[2]\nconst %c: float32[] = 3.0\n%a: float32[2] = add(%x, %c)\noutput %a"
    (match,) = matches(body, op("add", op("reshape", X, optional=True), Constant("c")))
    assert match.inner == ()


def test_any_fused_activation_matches_where_it_is_allowed():
    body = 'input %x: float32[2]\n%a: float32[2] = add(%x, %x) {fused_activation_function="relu6"}\noutput %a'
    assert not matches(body, op("add", X, X))
    assert matches(body, op("add", X, X, activation="relu6"))
    assert matches(body, op("add", X, X, activation=ANY))


def test_the_trace_has_the_changed_lines_alone():
    editor = GraphEditor(graph_of(f"{HEAD}%y: float32[2] = mul(%x, %s)\n%z: float32[2] = neg(%y)\noutput %z"))
    steps = (Pass("fuse_silu", fuse_silu, "one table", "docs"), Pass("again", fuse_silu, "nothing is left"))
    with trace_passes() as changes:
        run_passes(editor, steps, "t")
    (change,) = changes
    assert (change.owner, change.name, change.why, change.source) == ("t", "fuse_silu", "one table", "docs")
    assert change.before == ('%s: float32[2] = logistic(%x) "LOGISTIC_0_0"', '%y: float32[2] = mul(%x, %s) "MUL_0_1"')
    assert change.after == ('%y: float32[2] = silu(%x) "MUL_0_1"',)


def test_a_pass_of_another_package_runs_in_its_place(monkeypatch):
    order = []
    steps = tuple(Pass(name, lambda _, name=name: order.append(name), "a test") for name in ("first", "last"))
    extra = Pass("extra", lambda _: order.append("extra"), "a test")
    monkeypatch.setattr(passes, "_extra_passes", lambda: iter([ExtraPass("t", extra, "last"), ExtraPass("u", extra)]))
    run_passes(GraphEditor(), steps, "t")
    assert order == ["first", "extra", "last"]
    monkeypatch.setattr(passes, "_extra_passes", lambda: iter([ExtraPass("t", extra, "absent")]))
    with pytest.raises(TflqError, match=r"pass 'extra' .* wants to precede 'absent'; the passes of t are first, last"):
        run_passes(GraphEditor(), steps, "t")


def test_a_pass_over_graphs_replaces_the_graph():
    graph = graph_of(f"{HEAD}output %s")
    other = graph_of("input %x: float32[2]\n%n: float32[2] = neg(%x)\noutput %n")
    assert rewrite_graph(graph, (graph_pass("swap", lambda _: other, "a test"),)) == other


def test_traits():
    assert with_traits(Trait.CONVOLUTION) == {"conv_2d", "depthwise_conv_2d"}
    assert has_trait(Node("conv_2d", (), ()), Trait.POOL | Trait.WINDOW)
    assert not has_trait(Node("no_such_operator", (), ()), Trait.WINDOW)


def test_the_table_agrees_with_the_schema():
    fields = {name: options_class(name) for name in OPERATORS}
    fused = {n for n, table in fields.items() if table is not None and "fused_activation_function" in table.BY_NAME}
    assert fused == set(with_traits(Trait.FUSES))
    builtin = {member.name.lower() for member in BuiltinOperator}
    assert set(OPERATORS) <= builtin
