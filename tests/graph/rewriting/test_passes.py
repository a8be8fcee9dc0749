"""Passes: their order, the record of their changes, and passes of other packages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tflq.errors import TflqError
from tflq.graph import Graph
from tflq.graph.parsing import parse_graph
from tflq.graph.rewriting import (
    ExtraPass,
    GraphEditor,
    Pass,
    Value,
    graph_pass,
    op,
    passes,
    replace_root,
    rewrite,
    rewrite_graph,
    run_passes,
    trace_passes,
)

GRAPH = parse_graph(
    "graph g {\n input %x: float32[4]\n %a: float32[4] = abs(%x)\n %y: float32[4] = neg(%a)\n output %y\n}\n"
)


def rename_operator(old: str, new: str) -> Pass[GraphEditor]:
    def run(editor: GraphEditor) -> None:
        rewrite(editor, op(old, Value("x")), lambda _, match: replace_root(match, new, "x"))

    return Pass(f"rename_{old}", run, f"{new} is needed", "a document")


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


class Entry:
    """An entry point as importlib.metadata returns it."""

    def __init__(self, name: str, value: object) -> None:
        self.name, self._value = name, value

    def load(self) -> object:
        return self._value


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def patch(*values: object) -> None:
        def find_entry_points(group: str) -> list[Entry]:
            return [Entry(f"extra{i}", v) for i, v in enumerate(values)] if group == "tflq.passes" else []

        monkeypatch.setattr(passes, "find_entry_points", find_entry_points)

    return patch


def test_passes_run_in_order_and_the_given_graph_stays() -> None:
    result = rewrite_graph(GRAPH, [rename_operator("abs", "exp"), rename_operator("exp", "log")])
    assert operators(result) == ["log", "neg"]
    assert operators(GRAPH) == ["abs", "neg"]


def test_the_trace_has_the_lines_that_a_pass_changed() -> None:
    with trace_passes() as changes:
        rewrite_graph(GRAPH, [rename_operator("sin", "cos"), rename_operator("abs", "exp")], "mine")
    (change,) = changes
    assert (change.owner, change.name, change.why, change.source) == (
        "mine",
        "rename_abs",
        "exp is needed",
        "a document",
    )
    assert change.before == ('%a: float32[4] = abs(%x) "ABS_0_0"',)
    assert change.after == ('%a: float32[4] = exp(%x) "ABS_0_0"',)
    rewrite_graph(GRAPH, [rename_operator("abs", "exp")])
    assert len(changes) == 1


def test_an_inner_trace_hides_its_passes_from_the_outer_one() -> None:
    with trace_passes() as outer:
        with trace_passes() as inner:
            rewrite_graph(GRAPH, [rename_operator("abs", "exp")])
        rewrite_graph(GRAPH, [rename_operator("neg", "exp")])
    assert [change.name for change in inner] == ["rename_abs"]
    assert [change.name for change in outer] == ["rename_neg"]


def test_a_pass_may_replace_the_whole_graph() -> None:
    other = parse_graph("graph h {\n input %x: float32[4]\n %y: float32[4] = tanh(%x)\n output %y\n}\n")
    assert rewrite_graph(GRAPH, [graph_pass("replace_all", lambda graph: other, "a test")]) == other


@pytest.mark.parametrize(("before", "expected"), [("", ["log", "neg"]), ("rename_abs", ["exp", "neg"])])
def test_an_extra_pass_runs_at_its_place(install: Callable[..., None], before: str, expected: list[str]) -> None:
    install(ExtraPass("mine", rename_operator("exp", "log"), before))
    steps = [rename_operator("abs", "exp")]
    assert operators(rewrite_graph(GRAPH, steps, "mine")) == expected
    assert operators(rewrite_graph(GRAPH, steps, "another")) == ["exp", "neg"]
    assert operators(rewrite_graph(GRAPH, steps)) == ["exp", "neg"]


def test_an_extra_pass_is_traced_under_its_owner(install: Callable[..., None]) -> None:
    install(ExtraPass("mine", rename_operator("abs", "exp")))
    with trace_passes() as changes:
        run_passes(GraphEditor(GRAPH), [], "mine")
    assert [(change.owner, change.name) for change in changes] == [("mine", "rename_abs")]


def test_an_unknown_place_is_refused(install: Callable[..., None]) -> None:
    install(ExtraPass("mine", rename_operator("exp", "log"), "fold"))
    with pytest.raises(
        TflqError, match=r"'rename_exp' of tflq\.passes wants to precede 'fold'.*of mine are rename_abs$"
    ):
        rewrite_graph(GRAPH, [rename_operator("abs", "exp")], "mine")


def test_another_object_is_refused(install: Callable[..., None]) -> None:
    install(rename_operator("exp", "log"))
    with pytest.raises(TflqError, match=r"entry point 'extra0' of tflq\.passes: found Pass, allowed is an ExtraPass"):
        rewrite_graph(GRAPH, [], "mine")
