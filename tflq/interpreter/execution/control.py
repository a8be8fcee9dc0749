"""Operators that run other graphs, and resources: the engine itself executes them, in every arithmetic.

State that survives one node, graph or invocation: variables, resources, and which graphs ran once.

If samples take different branches, or loop a different number of times, they run in groups: each graph runs once for
all samples that take it. Resources have one value, so models that use them run sample by sample (engine.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError, InputError
from tflq.graph import Array, Graph, Node, Operands
from tflq.graph.operators import Trait, with_traits
from tflq.interpreter.execution.values import Value, merge, one_sample, select


@dataclass
class Session:
    """State of a run.

    Attributes:
        variables: (graph, tensor) -> value of a variable tensor; absent until it is first written.
        resources: name of a resource -> its value: a variable's value, or a hash table (a dict).
        called: graphs that CALL_ONCE has run.
        subgraph_runs: Number of subgraph runs of this invocation so far.
        generators: (graph, node) -> state returned by a random generator.
    """

    variables: dict[tuple[int, int], Value] = field(default_factory=dict)
    resources: dict[str, object] = field(default_factory=dict)
    called: set[int] = field(default_factory=set)
    subgraph_runs: int = 0
    generators: dict[tuple[int, int], Value] = field(default_factory=dict)


class Context(Protocol):
    """Access of a control operator to the program that runs it."""

    @property
    def session(self) -> Session:
        """The state of the run."""

    def run_graph(self, graph: int, inputs: Sequence[Value], samples: int) -> list[Value]:
        """Run another graph of the model and return its outputs."""


Control = Callable[[Context, Node, Sequence[Value], int], list[Value]]


def run_if(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """IF: input 0 (one bool) chooses the graph that gets the other inputs. Source: TFLite kernels/if.cc."""
    condition = _scalars(inputs[0], samples).astype(np.bool_)
    names = ("else_subgraph_index", "then_subgraph_index")
    return _branches(context, [node.attributes.integer(names[int(c)]) for c in condition], inputs[1:], samples)


def run_case(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """STABLEHLO_CASE: input 0 is the number of the graph; one out of range takes the last."""
    graphs = node.attributes.integers("branch_subgraph_indices")
    chosen = [int(i) if 0 <= i < len(graphs) else len(graphs) - 1 for i in _scalars(inputs[0], samples)]
    return _branches(context, [graphs[i] for i in chosen], inputs[1:], samples)


def run_while(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """WHILE: as long as graph `cond` returns true, graph `body` maps the values. Source: TFLite kernels/while.cc."""
    condition = node.attributes.integer("cond_subgraph_index")
    body = node.attributes.integer("body_subgraph_index")
    active: Integers = np.arange(samples)
    values = list(inputs)
    finished: list[tuple[Integers, list[Value]]] = []
    while active.size:
        goes_on = _scalars(context.run_graph(condition, values, active.size)[0], active.size).astype(np.bool_)
        if not goes_on.all():
            leaving = np.flatnonzero(~goes_on)
            finished.append((active[leaving], [select(v, leaving) for v in values]))
            staying = np.flatnonzero(goes_on)
            values = [select(v, staying) for v in values]
            active = active[staying]
        if active.size:
            values = context.run_graph(body, values, active.size)
    return [merge([(who, results[i]) for who, results in finished], samples) for i in range(len(inputs))]


def run_call_once(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """CALL_ONCE: runs a graph without inputs and outputs the first time only. Source: TFLite kernels/call_once.cc.

    Raises:
        GraphError: the graph has outputs.
    """
    graph = node.attributes.integer("init_subgraph_index")
    if graph not in context.session.called:
        context.session.called.add(graph)
        if context.run_graph(graph, inputs, samples):
            raise GraphError(f"{node.operator} runs subgraph {graph}, which has outputs; it must have none")
    return []


def run_composite(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """STABLEHLO_COMPOSITE: runs its decomposition. Source: TFLite kernels/stablehlo_composite.cc."""
    return context.run_graph(node.attributes.integer("decomposition_subgraph_index"), inputs, samples)


def run_var_handle(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """VAR_HANDLE: the name of a variable."""
    return [_handle(variable_name(node))]


def variable_name(node: Node) -> str:
    """Return the variable name of VAR_HANDLE: container and shared name."""
    return f"variable {node.attributes.text('container', '')}/{node.attributes.text('shared_name', '')}"


def run_assign_variable(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """ASSIGN_VARIABLE: keeps input 1 under the name in input 0."""
    context.session.resources[_name(inputs[0])] = inputs[1]
    return []


def run_read_variable(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """READ_VARIABLE: the last assigned value.

    Raises:
        InputError: no value was assigned yet.
    """
    name = _name(inputs[0])
    value = context.session.resources.get(name)
    if not isinstance(value, np.ndarray):
        raise InputError(f"node '{node.name}': {name} is read before anything was assigned to it")
    return [value]


def run_hashtable(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """HASHTABLE: the name of a table, empty until it is filled."""
    name = f"table {node.attributes.integer('table_id', 0)}"
    context.session.resources.setdefault(name, {})
    return [_handle(name)]


def run_hashtable_import(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """HASHTABLE_IMPORT: keys and values into a table that is still empty; a key that repeats keeps its first value."""
    table = _table(context, inputs[0])
    if not table:
        for key, value in zip(_elements(inputs[1]), _elements(inputs[2]), strict=True):
            table.setdefault(key, value)
    return []


def run_hashtable_find(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """HASHTABLE_FIND: the value of each key, or the default in input 2."""
    table, default = _table(context, inputs[0]), _elements(inputs[2])[0]
    keys, like = one_sample(inputs[1], 0), one_sample(inputs[2], 0)
    found: Array = np.array([table.get(key, default) for key in _elements(inputs[1])], like.dtype)
    return [found.reshape(keys.shape)]


def run_hashtable_size(context: Context, node: Node, inputs: Sequence[Value], samples: int) -> list[Value]:
    """HASHTABLE_SIZE: int64[1], the number of keys."""
    return [np.array([[len(_table(context, inputs[0]))]], np.int64)]


CONTROL: dict[str, Control] = {
    "assign_variable": run_assign_variable,
    "call_once": run_call_once,
    "hashtable": run_hashtable,
    "hashtable_find": run_hashtable_find,
    "hashtable_import": run_hashtable_import,
    "hashtable_size": run_hashtable_size,
    "if": run_if,
    "read_variable": run_read_variable,
    "stablehlo_case": run_case,
    "stablehlo_composite": run_composite,
    "stablehlo_while": run_while,
    "var_handle": run_var_handle,
    "while": run_while,
}
RESOURCES = with_traits(Trait.STATEFUL) & CONTROL.keys() - with_traits(Trait.CONTROL)
SUBGRAPH_ATTRIBUTES = (
    "then_subgraph_index",
    "else_subgraph_index",
    "cond_subgraph_index",
    "body_subgraph_index",
    "init_subgraph_index",
    "decomposition_subgraph_index",
)


def called_graphs(node: Node) -> tuple[int, ...]:
    """Return the numbers of the graphs that a node runs."""
    single = tuple(node.attributes.integer(a) for a in SUBGRAPH_ATTRIBUTES if a in node.attributes)
    return single + node.attributes.integers("branch_subgraph_indices", ())


def _branches(context: Context, graphs: Sequence[int], inputs: Sequence[Value], samples: int) -> list[Value]:
    parts = []
    for graph in dict.fromkeys(graphs):
        members = np.flatnonzero(np.array(graphs) == graph)
        chosen = inputs if members.size == samples else [select(v, members) for v in inputs]
        parts.append((members, context.run_graph(graph, chosen, members.size)))
    return [merge([(who, results[i]) for who, results in parts], samples) for i in range(len(parts[0][1]))]


def _scalars(value: Value, samples: int) -> Array:
    """Return the only element of each sample: T[S]."""
    rows = [one_sample(value, s) for s in range(samples)]
    if any(row.size != 1 for row in rows):
        raise GraphError(f"a condition has shape {rows[0].shape[1:]}, it needs one element")
    return np.concatenate([row.reshape(-1) for row in rows])


def _handle(name: str) -> Array:
    handle = np.empty((1,), object)
    handle[0] = name
    return handle


def require_handle(node: Node, operands: Operands) -> None:
    """Check that an operator on a resource has one handle.

    Raises:
        GraphError: input 0 states another number of elements than 1.

    Source: TFLite kernels/assign_variable.cc, read_variable.cc, hashtable_*.cc, Prepare.
    """
    if node.operator in RESOURCES and operands.inputs and operands.input(0).size != 1:
        raise GraphError(f"{operands.where}: input 0 has {operands.input(0).size} elements; one handle is needed")


def _name(value: Value) -> str:
    return str(one_sample(value, 0).reshape(-1)[0])


def _table(context: Context, handle: Value) -> dict[object, object]:
    name = _name(handle)
    table = context.session.resources.get(name)
    if not isinstance(table, dict):
        raise GraphError(f"'{name}' is no hash table")
    return table


def _elements(value: Value) -> list[object]:
    return list(one_sample(value, 0).reshape(-1).tolist())


def require_call(number: int, graph: Graph, inputs: Sequence[Value]) -> None:
    """Check the values that an operator passes to a subgraph.

    Raises:
        GraphError: another number of them than it has inputs, or another type.
    """
    if len(inputs) != len(graph.inputs):
        raise GraphError(f"subgraph {number} has {len(graph.inputs)} inputs, its caller gives {len(inputs)}")
    for t, value in zip(graph.inputs, inputs, strict=True):
        tensor = graph.tensors[t]
        if isinstance(value, np.ndarray) and value.dtype not in (tensor.dtype.storage, np.dtype(object)):
            raise GraphError(f"subgraph {number}: input '{tensor.name}' is {tensor.dtype.value}, got {value.dtype}")
