"""GraphEditor: its chains equal those of the graph it returns, after any sequence of changes."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tflq.errors import GraphError
from tflq.graph import DType, Graph, Node, Tensor, validate
from tflq.graph.graph import ABSENT
from tflq.graph.rewriting import GraphEditor


def tensor(name: str, *, is_variable: bool = False) -> Tensor:
    return Tensor(name, (1,), DType.FLOAT32, is_variable=is_variable)


def chain(length: int, name: str = "relu") -> Graph:
    """Return tensor 0 -> node 0 -> tensor 1 -> node 1 -> ..."""
    nodes = [Node("relu", (i,), (i + 1,), name=f"{name}{i}") for i in range(length)]
    return Graph([tensor(f"t{i}") for i in range(length + 1)], nodes, (0,), (length,))


def check_chains(editor: GraphEditor) -> Graph:
    graph = editor.graph()
    validate(graph)
    producers, consumers = graph.producers(), graph.consumers()
    for t in range(len(graph.tensors)):
        writer = editor.writer(t)
        assert writer == (graph.nodes[producers[t]] if t in producers else None)
        readers = Counter(node.name for node in graph.nodes for i in node.inputs if i == t)
        assert Counter(node.name for node in editor.readers(t)) == readers
        assert {graph.nodes[i].name for i in consumers.get(t, [])} == set(readers)
        uses = readers.total() + graph.outputs.count(t)
        assert editor.uses(t) == uses
        assert editor.is_output(t) == (t in graph.outputs)
        only = editor.only_reader(t)
        assert (only is not None) == (readers.total() == 1 and t not in graph.outputs)
    names = [node.name for node in editor.nodes]
    assert len(set(names)) == len(names) == len(editor)
    assert Counter(names) == Counter(node.name for node in graph.nodes)
    return graph


def change_once(editor: GraphEditor, draw: random.Random) -> None:
    node = draw.choice(editor.nodes)
    step = draw.randrange(7)
    if step == 0:
        result = editor.add_tensor(tensor("added"))
        editor.add(Node("add", (node.inputs[0], node.inputs[0]), (result,), name=node.name), before=node)
    elif step == 1:
        editor.replace(node, Node("tanh", node.inputs, node.outputs, name=draw.choice((node.name, "", "relu1"))))
    elif step == 2:
        editor.change(node, operator="mul", inputs=(node.inputs[0], node.inputs[0], ABSENT))
    elif step == 3:
        editor.insert_before(node, 0, Node("abs", (ABSENT,), (), name="abs"), tensor("before"))
    elif step == 4:
        editor.insert_after(node, Node("neg", (ABSENT,), (), name="neg"), tensor("after"))
    elif step == 5 and len(editor) > 3:
        editor.bypass(node)
    elif len(editor) > 3 and not any(editor.uses(t) for t in node.outputs):
        editor.remove(node)


@pytest.mark.parametrize("seed", range(20))
def test_chains_stay_valid(seed: int) -> None:
    draw, editor = random.Random(seed), GraphEditor(chain(6))
    for _ in range(40):
        change_once(editor, draw)
        check_chains(editor)
    editor.remove_dead()
    graph = check_chains(editor)
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        assert needed & set(node.outputs), node
        needed |= set(node.inputs)


def test_an_order_that_is_valid_stays() -> None:
    nodes = [Node("relu", (0,), (t,), name=f"n{t}") for t in (3, 1, 2)]
    nodes.append(Node("add", (1, 3), (4,), name="sum"))
    graph = Graph([tensor(str(t)) for t in range(5)], nodes, (0,), (4, 2))
    assert GraphEditor(graph).graph() == graph


def test_order_is_restored() -> None:
    graph = chain(5)
    editor = GraphEditor(Graph(graph.tensors, graph.nodes[::-1], graph.inputs, graph.outputs))
    assert editor.graph() == graph


def test_a_node_on_a_cycle_is_kept() -> None:
    nodes = [Node("add", (0, 2), (1,), name="a"), Node("relu", (1,), (2,), name="b"), Node("abs", (0,), (3,), name="c")]
    graph = GraphEditor(Graph([tensor(str(t)) for t in range(4)], nodes, (0,), (2, 3))).graph()
    assert [node.name for node in graph.nodes] == ["c", "a", "b"]
    with pytest.raises(GraphError, match="reads tensor 2"):
        validate(graph)


def test_a_variable_is_read_before_it_is_written() -> None:
    tensors = [tensor("x"), tensor("state", is_variable=True), tensor("y")]
    nodes = [Node("add", (0, 1), (2,), name="read"), Node("relu", (0,), (1,), name="write")]
    graph = Graph(tensors, nodes, (0,), (2,))
    editor = GraphEditor(graph)
    assert editor.graph() == graph
    assert editor.writer(1) == nodes[1]


def test_operators_on_state_keep_their_order() -> None:
    """Nodes that a pass appends must not let the READ_VARIABLE run before the ASSIGN_VARIABLE."""
    resource = Tensor("v", (), DType.RESOURCE)
    tensors = [tensor("x"), resource, tensor("a"), tensor("y"), tensor("late")]
    nodes = [
        Node("var_handle", (), (1,), name="handle"),
        Node("relu", (0,), (2,), name="value"),
        Node("assign_variable", (1, 2), (), name="assign"),
        Node("read_variable", (1,), (3,), name="read"),
    ]
    editor = GraphEditor(Graph(tensors, nodes, (0,), (3,)))
    assert editor.graph().nodes == nodes
    editor.insert_before(editor.node("assign"), 1, Node("abs", (2,), (), name="inner"), tensor("inner"))
    editor.remove(editor.node("value"))
    editor.add(Node("relu", (0,), (2,), name="value"))
    assert [node.name for node in editor.graph().nodes] == ["handle", "value", "inner", "assign", "read"]


def test_recurrent_layers_may_change_their_order() -> None:
    """Their state is a tensor of their own; a pass may append the first one."""
    nodes = [Node("svdf", (1,), (2,), name="second"), Node("svdf", (0,), (1,), name="first")]
    graph = GraphEditor(Graph([tensor(str(t)) for t in range(3)], nodes, (0,), (2,))).graph()
    assert [node.name for node in graph.nodes] == ["first", "second"]


def test_duplicate_and_empty_names_become_unique() -> None:
    nodes = [Node("relu", (0,), (t,), name=name) for t, name in enumerate(("a", "a", "", "", "a_1", "a"), 1)]
    editor = GraphEditor(Graph([tensor(str(t)) for t in range(7)], nodes, (0,), (6,)))
    assert [node.name for node in editor.nodes] == ["a", "a_1", "node_1", "node_2", "a_1_1", "a_2"]
    editor.remove(editor.node("a_1"))
    assert editor.unique_name("a") == "a_1"
    assert editor.unique_name("b") == "b"


def test_names_of_a_loaded_graph_are_restored() -> None:
    """GAP9 emits two nodes of one name."""
    nodes = [Node("relu", (0,), (1,), name="a"), Node("abs", (1,), (2,), name="a")]
    graph = Graph([tensor(str(t)) for t in range(3)], nodes, (0,), (2,))
    editor = GraphEditor(graph)
    assert editor.graph() == graph
    editor.bypass(editor.node("a_1"))
    assert [(node.name, node.operator) for node in editor.graph().nodes] == [("a", "relu")]


def test_a_late_node_moves_before_its_reader() -> None:
    nodes = [Node("relu", (0,), (1,), name="a"), Node("neg", (0,), (2,), name="b"), Node("add", (1, 2), (3,), name="c")]
    editor = GraphEditor(Graph([tensor(str(t)) for t in range(4)], nodes, (0,), (3,)))
    editor.add(Node("exp", (1,), (editor.add_tensor(tensor("d")),), name="late"))
    editor.set_input(editor.node("c"), 1, 4)
    assert [node.name for node in editor.graph().nodes] == ["a", "b", "late", "c"]


def test_many_insertions_at_one_place_keep_the_order() -> None:
    editor = GraphEditor(chain(1))
    for i in range(200):
        editor.insert_after(editor.node("relu0"), Node("neg", (0,), (), name=f"n{i}"), tensor(f"i{i}"))
    assert [node.name for node in editor.graph().nodes] == ["relu0", *(f"n{i}" for i in reversed(range(200)))]


@pytest.mark.parametrize("argument", ["before", "after"])
def test_a_refused_addition_changes_nothing(argument: str) -> None:
    graph = chain(2)
    editor = GraphEditor(graph)
    with pytest.raises(GraphError, match="no node is called 'gone'"):
        editor.add(Node("abs", (0,), (1,), name="gone"), **{argument: Node("abs", (), (), name="gone")})
    assert editor.graph() == graph


@pytest.mark.parametrize("method", ["node", "remove", "change", "bypass"])
def test_a_removed_node_is_refused(method: str) -> None:
    editor = GraphEditor(chain(2))
    removed = editor.node("relu0")
    editor.bypass(removed)
    with pytest.raises(GraphError, match="no node is called 'relu0'"):
        getattr(editor, method)(removed.name if method == "node" else removed)
    assert editor.current(removed) is None
    assert removed not in editor


class CountingNames(dict[str, Node]):
    """Nodes by name that count look-ups."""

    look_ups = 0

    def __contains__(self, key: object) -> bool:
        self.look_ups += 1
        return super().__contains__(key)

    def __getitem__(self, key: str) -> Node:
        self.look_ups += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("name", ["relu", ""])
def test_work_grows_with_the_length_of_a_chain(name: str) -> None:
    def count_work(length: int) -> int:
        editor = GraphEditor()
        editor._nodes = names = CountingNames()
        graph = chain(length)
        editor.load(Graph(graph.tensors, [Node("relu", n.inputs, n.outputs, name=name) for n in graph.nodes], (0,), ()))
        editor.set_outputs((length,))
        for node in editor.nodes[::2]:
            editor.bypass(node)
        editor.graph()
        return names.look_ups

    assert count_work(4000) <= 10 * count_work(400) + 100


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 3), (1, 2), (1, 4)])
def test_swap_exchanges_the_places_of_two_nodes(first: int, second: int) -> None:
    editor = GraphEditor(chain(5))
    names = [node.name for node in editor.nodes]
    editor.swap(editor.node(names[first]), editor.node(names[second]))
    names[first], names[second] = names[second], names[first]
    assert [node.name for node in editor.nodes] == names


def test_sort_brings_nodes_into_the_order_of_the_graph() -> None:
    editor = GraphEditor(chain(3))
    editor.swap(editor.node("relu0"), editor.node("relu2"))
    assert [node.name for node in editor.nodes] == ["relu2", "relu1", "relu0"]
    editor.sort()
    assert [node.name for node in editor.nodes] == ["relu0", "relu1", "relu2"]
    check_chains(editor)


def test_restate_gives_nodes_of_the_graph_the_same_name() -> None:
    editor = GraphEditor(chain(2))
    editor.restate(editor.node("relu1"), "relu0")
    assert [node.name for node in editor.graph().nodes] == ["relu0", "relu0"]
    assert [node.name for node in editor.nodes] == ["relu0", "relu1"]
