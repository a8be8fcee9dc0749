"""What a network keeps from one sample to the next: a struct whose members are its variables.

Resource variables (VAR_HANDLE) start as the graph leaves them that CALL_ONCE runs; variable tensors (the state of SVDF
and LSTM) with 0, int8 ones with their zero point, as TFLite resets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.emit.c99.words import array, identifier, stored_type
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Array, DType, Graph, Node, Tensor
from tflq.interpreter import Engine
from tflq.interpreter.execution.control import Session, called_graphs, variable_name
from tflq.interpreter.execution.program import fresh
from tflq.quoting import c_comment

SILENT = ("var_handle", "call_once")
"""Operators that compute no tensor: the struct and network_reset are in their place."""
MOVES = {"read_variable": 0, "assign_variable": 1}
"""Operators that copy between a variable and a tensor -> how many tensors they read beside the handle."""


@dataclass(frozen=True, eq=False)
class Member:
    """One variable.

    Attributes:
        name: in the struct; the number at its end makes it unique, and no word of C or C++.
        title: what the model calls it.
        start: what it holds before the first sample: dtype[*shape].
    """

    name: str
    title: str
    start: Array

    @property
    def type(self) -> str:
        """Of its elements in C."""
        return stored_type(self.start.dtype)


Variables = Mapping[int, Member]
"""Handle of a resource variable, or variable tensor -> its member; several handles may share one."""


def variables_of(engine: Engine) -> Variables:
    """Return the variables of an engine's graph.

    Raises:
        UnsupportedError: tables, types, changing shapes or an order that the struct cannot have.
    """
    graph = engine.graph
    handles = {node.outputs[0]: variable_name(node) for node in graph.nodes if node.operator == "var_handle"}
    tensors = [t for t, tensor in enumerate(graph.tensors) if tensor.is_variable]
    if not handles and not tensors:
        return {}
    _require_form(graph, {*handles, *tensors})
    started = _started(engine).resources
    found: dict[int, Member] = {}
    for name in dict.fromkeys(handles.values()):
        mine = [t for t, other in handles.items() if other == name]
        held = _held(graph, mine, name)
        if held is not None:
            member = _member(len(found), name.removeprefix("variable "), held, started.get(name))
            found |= dict.fromkeys(mine, member)
    for t in tensors:
        found[t] = _member(len(found), graph.tensors[t].name, graph.tensors[t], fresh(graph.tensors[t]))
    return found


def _require_form(graph: Graph, kept: set[int]) -> None:
    """Refuse what touches variables in another way than reads and assigns of this graph, behind its CALL_ONCE."""
    handles = {t for t in kept if not graph.tensors[t].is_variable}
    moved = ""
    for node in graph.nodes:
        where = f"{node.operator.upper()} '{node.name}'"
        used = [t for t in (*node.inputs, *node.outputs) if t != ABSENT and _is_resource(graph.tensors[t])]
        if node.operator not in (*MOVES, *SILENT) and (used or called_graphs(node)):
            raise UnsupportedError(f"no c99 program: {where} beside variables; only reads and assigns have a form in C")
        if not handles.issuperset(used):
            raise UnsupportedError(f"no c99 program: {where} uses a variable without VAR_HANDLE")
        if node.operator == "call_once" and moved:
            raise UnsupportedError(f"no c99 program: {where} comes behind {moved}, which needs what it sets")
        moved = moved or (where if node.operator in MOVES else "")
    borders = [t for t in graph.inputs if t in kept]
    borders += [t for t in (*graph.inputs, *graph.outputs) if _is_resource(graph.tensors[t])]
    if borders or not graph.inputs:
        what = f"'{graph.tensors[borders[0]].name}' is a variable" if borders else "it has no inputs"
        raise UnsupportedError(f"no c99 program of this network with state: {what}; inputs and outputs are tensors")


def _is_resource(tensor: Tensor) -> bool:
    return tensor.dtype in (DType.RESOURCE, DType.VARIANT)


def _started(engine: Engine) -> Session:
    """Run the graphs of CALL_ONCE, which have no inputs: what they assign is constant."""
    session = Session()
    for node in engine.graph.nodes:
        if node.operator == "call_once":
            graph = engine.graphs[called_graphs(node)[0]]
            Engine(graph, graphs=engine.graphs, state="stream", session=session).run([])
    return session


def _held(graph: Graph, handles: list[int], name: str) -> Tensor | None:
    """Return one of the tensors that a variable is read to or assigned from; None where there are none.

    Raises:
        UnsupportedError: they differ in type or shape.
    """
    nodes = [node for node in graph.nodes if node.operator in MOVES and node.inputs[0] in handles]
    tensors = [graph.tensors[value_of(node)] for node in nodes]
    kinds = dict.fromkeys((t.dtype.value, t.shape) for t in tensors)
    if len(kinds) > 1:
        raise UnsupportedError(f"no c99 program: {name} holds {' and '.join(f'{d}{list(s)}' for d, s in kinds)}")
    return tensors[0] if tensors else None


def value_of(node: Node) -> int:
    """Return the tensor that READ_VARIABLE writes or ASSIGN_VARIABLE reads."""
    return node.inputs[1] if MOVES[node.operator] else node.outputs[0]


def _member(number: int, title: str, tensor: Tensor, start: object) -> Member:
    storage = tensor.dtype.storage
    first = np.zeros((1, *tensor.shape), storage) if start is None else start
    is_number = storage.kind in "biu" or storage.name in ("float32", "float64")
    if not isinstance(first, np.ndarray) or (first.dtype, first.shape[1:]) != (storage, tensor.shape) or not is_number:
        found = f"{first.dtype}{list(first.shape[1:])}" if isinstance(first, np.ndarray) else "no array"
        raise UnsupportedError(
            f"no c99 program: variable '{title}' is {tensor.dtype.value}{list(tensor.shape)} and starts as {found}; "
            f"a member of the struct has one shape, and a type of C"
        )
    return Member(f"{identifier(title)}_{number}", title, first[0])


def members_of(variables: Variables) -> list[Member]:
    """Return each member once, in order."""
    return list(dict.fromkeys(variables.values()))


def struct_text(variables: Variables) -> str:
    """Return the struct and network_reset's declaration; nothing without variables."""
    if not variables:
        return ""
    lines = ["", "/* What the network keeps from one sample to the next. */", "struct network_state {"]
    for member in members_of(variables):
        shape = "x".join(map(str, member.start.shape)) or "1"
        lines.append(
            f"    {member.type} {member.name}[{max(1, member.start.size)}]; /* {shape} of {_quoted(member)} */"
        )
    lines += ["};", "", "/* Sets what the network starts with; call it before the first sample. */"]
    return "\n".join([*lines, "void network_reset(struct network_state *state);", ""])


def _quoted(member: Member) -> str:
    return c_comment(f"'{member.title}'")


def reset_text(variables: Variables) -> str:
    """Return network_reset with the constants that it copies; nothing without variables."""
    if not variables:
        return ""
    constants, lines = [], []
    for member in members_of(variables):
        different = np.unique(np.frombuffer(member.start.tobytes(), np.uint8))
        if different.size < 2:
            byte = int(different[0]) if different.size else 0
            lines.append(f"    memset(state->{member.name}, {byte}, sizeof state->{member.name});")
        else:
            values = array(member.start, member.type)
            constants.append(f"static const {member.type} {member.name}_start[{member.start.size}] = {{\n{values}\n}};")
            lines.append(f"    memcpy(state->{member.name}, {member.name}_start, sizeof state->{member.name});")
    body = "\n".join(["void network_reset(struct network_state *state)", "{", *lines, "}"])
    return "\n\n".join([*constants, body, ""])
