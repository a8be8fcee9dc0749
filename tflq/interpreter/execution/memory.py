"""Limits on the memory of a model, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tflq import limits
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph, Tensor
from tflq.interpreter.execution.control import called_graphs
from tflq.interpreter.operands.checks import size_in_bytes

_TOO_BIG = ("array is too big", "Maximum allowed dimension", "maximum supported dimension")


def require_memory(graphs: Sequence[Graph]) -> None:
    """Check the size of each tensor that is not stored in the file.

    Raises:
        UnsupportedError: one is larger than `max_bytes`.
    """
    allowed = limits.current()
    for graph in graphs:
        for i, tensor in enumerate(graph.tensors):
            if tensor.data is None:
                what = f"bytes of one sample of tensor {i} '{tensor.name}' of shape {tensor.shape}"
                allowed.require("max_bytes", size_in_bytes(tensor.shape, tensor.dtype), what)


def require_live_memory(graphs: Sequence[Graph], number: int) -> None:
    """Check the size of the tensors that are alive at a time, by the shapes that the file states.

    While a node runs other graphs, their tensors are added to its own.

    Args:
        graphs: Graphs of the model, none of which runs itself.
        number: Number of the graph that is run.

    Raises:
        UnsupportedError: it is more than `max_memory`.
    """
    what = f"bytes of all tensors of one sample that are alive at a time in subgraph {number}"
    limits.current().require("max_memory", _most_alive(graphs, number, {}), what)


class AliveBytes:
    """Counter of the bytes of computed tensors of one sample that are alive, node by node.

    Attributes:
        alive: Bytes of inputs, variables, and of written tensors that are still to be read.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._last = {t: i for i, node in enumerate(graph.nodes) for t in (*node.inputs, *node.outputs) if t != ABSENT}
        self._last.update(dict.fromkeys(graph.outputs, len(graph.nodes)))
        self.alive = sum(_computed_bytes(graph.tensors[t]) for t in graph.inputs)
        self.alive += sum(size_in_bytes(t.shape, t.dtype) for t in graph.tensors if t.is_variable)

    def write(self, index: int) -> None:
        """Add the outputs of a node with known shapes."""
        self.alive += sum(_computed_bytes(self._graph.tensors[t]) for t in self._graph.nodes[index].outputs)

    def release(self, index: int) -> None:
        """Subtract the tensors that no later node reads."""
        node = self._graph.nodes[index]
        touched = {t for t in (*node.inputs, *node.outputs) if t != ABSENT and self._last[t] == index}
        self.alive -= sum(_computed_bytes(self._graph.tensors[t]) for t in touched)


def _most_alive(graphs: Sequence[Graph], number: int, known: dict[int, int]) -> int:
    if number not in known:
        graph, count = graphs[number], AliveBytes(graphs[number])
        most = count.alive
        for i, node in enumerate(graph.nodes):
            count.write(i)
            within = max((_most_alive(graphs, called, known) for called in called_graphs(node)), default=0)
            most = max(most, count.alive + within)
            count.release(i)
        known[number] = most
    return known[number]


def _computed_bytes(tensor: Tensor) -> int:
    return 0 if tensor.is_constant or tensor.is_variable else size_in_bytes(tensor.shape, tensor.dtype)


@contextmanager
def enough_memory() -> Iterator[None]:
    """Report in one line that there is not enough memory, or that numpy has no such large arrays.

    Raises:
        UnsupportedError: there is not.
    """
    try:
        yield
    except MemoryError as error:
        raise UnsupportedError(f"the model needs more memory than there is: {error}") from error
    except RecursionError as error:
        raise UnsupportedError(f"the model's parts lie deeper within each other than Python goes: {error}") from error
    except ValueError as error:
        if not str(error).startswith(_TOO_BIG):
            raise
        raise UnsupportedError(f"the model needs an array beyond all limits: {error}") from error
