"""A graph under change: nodes by name, with use-def chains that stay valid."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, pairwise

from tflq.arrays import Array
from tflq.errors import GraphError
from tflq.graph.attributes import Attribute
from tflq.graph.cut import pruned
from tflq.graph.graph import ABSENT, Graph, Node, Tensor
from tflq.graph.operators import Trait, has_trait

_END = ""
"""Neighbor of the first and of the last node; no node has this name."""


class GraphEditor:
    """A graph that passes change in place.

    A node is identified by its name, which is unique: methods take a node and act on the current node of that name.
    Tensors are identified by their index, which never changes; new tensors get the next index. Each chain query is
    O(1) in the size of the graph. The order of execution is restored once, by `graph`.

    Attributes:
        tensors: Tensors by index; assign to an element to change a type or a range.
        inputs: Indices of the graph's inputs.
        outputs: Indices of the graph's outputs; change them through `redirect` or `set_outputs`.
        name: Name of the graph.
        extra: Facts that only the file format knows.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.tensors: list[Tensor] = []
        self.inputs: tuple[int, ...] = ()
        self.name = ""
        self.extra: object | None = None
        self._outputs: tuple[int, ...] = ()
        self._output_counts: dict[int, int] = {}
        self._nodes: dict[str, Node] = {}
        self._stated_names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # base of a name -> a number up to which all suffixes are taken
        self._next, self._previous = {_END: _END}, {_END: _END}
        self._places: dict[str, float] = {}
        self._writers: dict[int, str] = {}
        self._readers: dict[int, dict[str, int]] = {}
        if graph is not None:
            self.load(graph)

    def load(self, graph: Graph) -> None:
        """Replace the whole content by a graph.

        A node without a unique name gets one inside the editor; `graph` restores the name of the loaded graph, because
        emitted files state it.
        """
        for node in self.nodes:
            self.remove(node)
        self.tensors, self.inputs = list(graph.tensors), tuple(graph.inputs)
        self.name, self.extra = graph.name, graph.extra
        self.set_outputs(graph.outputs)
        for node in graph.nodes:
            added = self.add(node)
            if added.name != node.name:
                self._stated_names[added.name] = node.name

    # ---- queries

    @property
    def nodes(self) -> list[Node]:
        """The nodes in their order, as a list that later changes do not touch."""
        return [self._nodes[name] for name in self._names()]

    @property
    def outputs(self) -> tuple[int, ...]:
        """Indices of the graph's outputs."""
        return self._outputs

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: Node | str) -> bool:
        return (node if isinstance(node, str) else node.name) in self._nodes

    def node(self, name: str) -> Node:
        """Return the node of a name.

        Raises:
            GraphError: No node has the name.
        """
        try:
            return self._nodes[name]
        except KeyError:
            raise GraphError(f"no node is called '{name}'") from None

    def current(self, node: Node) -> Node | None:
        """Return the node of the same name as it is now; None if it was removed."""
        return self._nodes.get(node.name)

    def writer(self, t: int) -> Node | None:
        """Return the node that writes a tensor; None for inputs, constants and tensors without a writer."""
        name = self._writers.get(t)
        return None if name is None else self._nodes[name]

    def nodes_of(self, *operators: str) -> list[Node]:
        """Return the nodes of some operators in their order, as a list that later changes do not touch."""
        return [node for node in self.nodes if node.operator in operators]

    def writer_of(self, t: int, *operators: str) -> Node | None:
        """Return the node that writes a tensor if it is of one of the operators; else None."""
        node = self.writer(t)
        return node if node is not None and node.operator in operators else None

    def readers(self, t: int) -> list[Node]:
        """Return the nodes that read a tensor, in order; a node that reads it twice appears twice."""
        times = self._readers.get(t, {})
        names = sorted(times, key=self._places.__getitem__) if len(times) > 1 else times
        return [self._nodes[name] for name in names for _ in range(times[name])]

    def uses(self, t: int) -> int:
        """Return how often a tensor is read by nodes and returned as an output of the graph."""
        return sum(self._readers.get(t, {}).values()) + self._output_counts.get(t, 0)

    def is_output(self, t: int) -> bool:
        """Return True if the graph returns the tensor."""
        return t in self._output_counts

    def is_dead(self, node: Node) -> bool:
        """Return True if the node has results, none of which is used."""
        return bool(node.outputs) and not any(self._readers.get(t) or t in self._output_counts for t in node.outputs)

    def only_reader(self, t: int) -> Node | None:
        """Return the single node that reads a tensor, once; None if there are several uses or it is an output."""
        if self.uses(t) != 1 or t in self._output_counts:
            return None
        (name,) = self._readers[t]
        return self._nodes[name]

    def constant(self, t: int) -> Array | None:
        """Return the value of a constant; None for an absent operand and for a computed tensor."""
        return None if t == ABSENT else self.tensors[t].data

    def shape(self, t: int) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.tensors[t].shape

    def operands(self, node: Node) -> list[int]:
        """Return the operands that patterns match: the inputs of the node."""
        return list(node.inputs)

    # ---- changes

    def add_tensor(self, tensor: Tensor) -> int:
        """Append a tensor and return its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def set_outputs(self, outputs: Iterable[int]) -> None:
        """Let the graph return other tensors."""
        self._outputs = tuple(outputs)
        self._output_counts = {}
        for t in self._outputs:
            self._output_counts[t] = self._output_counts.get(t, 0) + 1

    def unique_name(self, wanted: str) -> str:
        """Return a name that no node has: the one wanted, or that with _1, _2, ... appended."""
        if wanted and wanted not in self._nodes:
            return wanted
        base = wanted or "node"
        number = next(i for i in count(self._numbers.get(base, 1)) if f"{base}_{i}" not in self._nodes)
        self._numbers[base] = number
        return f"{base}_{number}"

    def add(self, node: Node, *, before: Node | None = None, after: Node | None = None) -> Node:
        """Add a node at the end, or directly before or after another node, and return it with its unique name."""
        previous = self._previous[_END if before is None else self.node(before.name).name]
        previous = previous if after is None else self.node(after.name).name
        name = self.unique_name(node.name)
        node = node if name == node.name else replace(node, name=name)
        self._nodes[name] = node
        self._place(name, previous)
        self._link(node)
        return node

    def replace(self, node: Node, by: Node) -> Node:
        """Put another node in the place of a node and return it; it gets a unique name if its name differs.

        Raises:
            GraphError: The node was removed.
        """
        old = self.node(node.name)
        if by.name != old.name:
            by = replace(by, name=self.unique_name(by.name))
            self._place(by.name, old.name)
            self.remove(old)
        else:
            self._unlink(old)
        self._nodes[by.name] = by
        self._link(by)
        return by

    def change(
        self,
        node: Node,
        *,
        operator: str | None = None,
        inputs: Iterable[int] | None = None,
        outputs: Iterable[int] | None = None,
        **attributes: Attribute,
    ) -> Node:
        """Change some fields and attributes of the current node of this name and return it."""
        old = self.node(node.name)
        changed = replace(
            old,
            operator=old.operator if operator is None else operator,
            inputs=old.inputs if inputs is None else tuple(inputs),
            outputs=old.outputs if outputs is None else tuple(outputs),
            attributes=old.attributes.updated(**attributes) if attributes else old.attributes,
        )
        return self.replace(old, changed)

    def set_input(self, node: Node, position: int, t: int) -> Node:
        """Let one operand of a node be another tensor."""
        inputs = self.node(node.name).inputs
        return self.change(node, inputs=(t if p == position else i for p, i in enumerate(inputs)))

    def remove(self, node: Node) -> None:
        """Remove a node; its results have no writer from now on."""
        old = self.node(node.name)
        self._unlink(old)
        self._detach(old.name)
        del self._nodes[old.name], self._places[old.name]
        self._stated_names.pop(old.name, None)
        base, _, number = old.name.rpartition("_")
        if base in self._numbers and number.isdecimal():
            self._numbers[base] = min(self._numbers[base], int(number))

    def sort(self) -> None:
        """Bring the nodes into the order of `graph` now, for a pass that depends on it."""
        previous = _END
        for name in [node.name for node in self._in_order()]:
            self._detach(name)
            self._place(name, previous)
            previous = name

    def swap(self, first: Node, second: Node) -> None:
        """Exchange the places of two nodes in the order; the first one precedes the second."""
        a, b = self.node(first.name).name, self.node(second.name).name
        previous = self._previous[a]
        self._detach(a)
        self._place(a, b)
        self._detach(b)
        self._place(b, previous)

    def restate(self, node: Node, name: str) -> None:
        """Let `graph` return a node under a name that other nodes may have, too."""
        if name != node.name:
            self._stated_names[self.node(node.name).name] = name

    def redirect(self, old: int, new: int) -> None:
        """Let all readers of a tensor, and the graph's outputs, use another tensor."""
        for name in list(self._readers.get(old, ())):
            node = self._nodes[name]
            self.replace(node, replace(node, inputs=tuple(new if t == old else t for t in node.inputs)))
        if old in self._output_counts:
            self.set_outputs(new if t == old else t for t in self._outputs)

    def bypass(self, node: Node, position: int = 0) -> None:
        """Remove a node with one result; its readers read its operand at `position`."""
        node = self.node(node.name)
        self.redirect(node.outputs[0], node.inputs[position])
        self.remove(node)

    def insert_before(self, reader: Node, position: int, node: Node, tensor: Tensor) -> Node:
        """Put a node between one operand of a reader and the reader.

        Args:
            reader: Node with the operand.
            position: Position of the operand.
            node: The new node; its first input and its outputs are set here.
            tensor: Result of the new node.
        """
        reader = self.node(reader.name)
        source, result = reader.inputs[position], self.add_tensor(tensor)
        added = self.add(replace(node, inputs=(source, *node.inputs[1:]), outputs=(result,)), before=reader)
        self.set_input(reader, position, result)
        return added

    def insert_after(self, writer: Node, node: Node, inner: Tensor, position: int = 0) -> Node:
        """Put a node between a writer and the readers of one of its results; the readers keep the tensor they read.

        Args:
            writer: Node with the result.
            node: The new node; its first input and its outputs are set here.
            inner: Tensor that the writer writes from now on.
            position: Position of the result.
        """
        writer = self.node(writer.name)
        old, new = writer.outputs[position], self.add_tensor(inner)
        self.change(writer, outputs=(new if p == position else t for p, t in enumerate(writer.outputs)))
        return self.add(replace(node, inputs=(new, *node.inputs[1:]), outputs=(old,)), after=writer)

    def remove_unread(self, nodes: Iterable[Node]) -> None:
        """Remove the nodes without a used result, and then the producers among the nodes that become unread."""
        waiting = {node.name for node in nodes}
        while True:
            unread = [name for name in waiting if name in self._nodes and self.is_dead(self._nodes[name])]
            if not unread:
                return
            for name in unread:
                self.remove(self._nodes[name])

    def remove_dead(self) -> None:
        """Remove the nodes that no output of the graph needs; nodes without results stay with all that they read."""
        waiting = [node for node in self._nodes.values() if self.is_dead(node)]
        while waiting:
            node = waiting.pop()
            if node.name not in self._nodes:
                continue
            self.remove(node)
            for t in node.inputs:
                writer = self.writer(t)
                if writer is not None and self.is_dead(writer):
                    waiting.append(writer)

    # ---- results

    def graph(self, *, prune: bool = False) -> Graph:
        """Return the graph with its nodes in an order of execution.

        Each node is placed as early as its operands and the current order of the nodes allow: a valid order stays.
        Operators on variables and tables keep their order: an ASSIGN_VARIABLE decides the next READ_VARIABLE.

        Args:
            prune: Leave out unread nodes and unused tensors; tensors are numbered anew (`tflq.graph.pruned`).
        """
        stated = self._stated_names
        nodes = [replace(n, name=stated[n.name]) if n.name in stated else n for n in self._in_order()]
        result = Graph(list(self.tensors), nodes, tuple(self.inputs), self._outputs, self.name, self.extra)
        return pruned(result) if prune else result

    def _in_order(self) -> Iterator[Node]:
        """Yield always the first ready node; nodes on a cycle follow at the end."""
        names = list(self._names())
        number = {name: i for i, name in enumerate(names)}
        missing = [sum(self._is_awaited(t) for t in self._nodes[name].inputs) for name in names]
        stateful = [i for i, name in enumerate(names) if _keeps_place(self._nodes[name])]
        following = dict(pairwise(stateful))
        for i in following.values():
            missing[i] += 1
        ready = [i for i, left in enumerate(missing) if not left]
        heapq.heapify(ready)
        while ready:
            i = heapq.heappop(ready)
            node = self._nodes[names[i]]
            yield node
            served = [(number[n], times) for t in node.outputs for n, times in self._count_waiting(t)]
            for j, times in (*served, *([(following[i], 1)] if i in following else [])):
                missing[j] -= times
                if not missing[j]:
                    heapq.heappush(ready, j)
        yield from (self._nodes[name] for name, left in zip(names, missing, strict=True) if left > 0)

    def _is_awaited(self, t: int) -> bool:
        """Return True if readers of a tensor run after its writer; a variable has a value before."""
        return t in self._writers and not self.tensors[t].is_variable

    def _count_waiting(self, t: int) -> Iterable[tuple[str, int]]:
        return self._readers.get(t, {}).items() if self._is_awaited(t) else ()

    # ---- chains

    def _link(self, node: Node) -> None:
        self._writers.update(dict.fromkeys(node.outputs, node.name))
        for t in node.inputs:
            if t != ABSENT:
                times = self._readers.setdefault(t, {})
                times[node.name] = times.get(node.name, 0) + 1

    def _unlink(self, node: Node) -> None:
        for t in node.outputs:
            if self._writers.get(t) == node.name:
                del self._writers[t]
        for t in set(node.inputs) - {ABSENT}:
            del self._readers[t][node.name]

    # ---- order: a list of names linked both ways, and a number for each that grows along the list

    def _names(self) -> Iterator[str]:
        name = self._next[_END]
        while name != _END:
            yield name
            name = self._next[name]

    def _detach(self, name: str) -> None:
        before, after = self._previous.pop(name), self._next.pop(name)
        self._next[before], self._previous[after] = after, before

    def _place(self, name: str, previous: str) -> None:
        """Insert a name after another one; after `_END` it is the first."""
        following = self._next[previous]
        self._next[previous] = self._previous[following] = name
        self._next[name], self._previous[name] = following, previous
        low = self._places[previous] if previous != _END else self._places.get(following, 1.0) - 1
        high = self._places[following] if following != _END else low + 2
        self._places[name] = (low + high) / 2
        if not low < self._places[name] < high:  # float64 has no number between the two
            self._places = {name: float(i) for i, name in enumerate(self._names())}


def _keeps_place(node: Node) -> bool:
    """Return True for an operator on state that other nodes share; the state of a recurrent layer is its own."""
    return has_trait(node, Trait.STATEFUL) and not has_trait(node, Trait.RECURRENT)
