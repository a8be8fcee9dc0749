"""Programs: a model's lowered graphs as lists of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np

from tflq import limits
from tflq.errors import GraphError, LimitError, UnsupportedError
from tflq.graph import ABSENT, Affine, Array, DType, Graph, Node, Tensor
from tflq.interpreter.compiled.compiler import Library as Kernels
from tflq.interpreter.compiled.run import CompiledRun, compiled_steps
from tflq.interpreter.execution.control import CONTROL, RESOURCES, Session, called_graphs, require_call
from tflq.interpreter.execution.deferred import Deferred, DeferredNode, placed
from tflq.interpreter.execution.lowering import Step, lower
from tflq.interpreter.execution.settle import shared
from tflq.interpreter.execution.values import Value, bytes_of, for_all_samples
from tflq.interpreter.layout import (
    SAMPLES_LAST_FROM,
    nodes_with_samples_last,
    to_samples_first,
    to_samples_last,
)
from tflq.interpreter.operands.computations import name_computations
from tflq.interpreter.registry import Kernel, kernel, kernel_name

Part: TypeAlias = Step | CompiledRun
"""What a program executes in one go."""


class Listener(Protocol):
    """Observer of each node before and after it runs: dumps, comparison, profiling and progress are listeners.

    Arrays have a leading sample axis; if shapes differ between samples, an object array [S] contains one array each.
    """

    def will_run(self, index: int, node: Node, inputs: Sequence[Array | None]) -> None:
        """Called before node `index` runs on these arrays."""

    def did_run(self, index: int, node: Node, outputs: Sequence[Array]) -> None:
        """Called after it wrote these."""


class Program:
    """A lowered graph ready to run."""

    def __init__(self, library: Library, number: int) -> None:
        self.library = library
        self.number = number
        graph = library.graphs[number]
        is_called = number in library.called  # with inputs of other shapes than the file states
        is_lowered = all(n.params is not None for n in graph.nodes)
        self.graph = graph if is_lowered else lower(graph, library.arithmetic, is_called)
        self.constants: dict[int, Value] = {
            i: shared(t.data) for i, t in enumerate(self.graph.tensors) if t.data is not None
        }
        written = (self.graph.tensors[t] for node in self.graph.nodes for t in node.outputs)
        self.folded_bytes = sum(t.data.nbytes for t in written if t.data is not None)
        self._steps = [self._step(i) for i in self._computed()]
        gains = self._gains() if library.kernels is None else {}
        self._samples_last = nodes_with_samples_last(self.graph, gains)
        self._prepared: dict[tuple[tuple[int, ...], bool], list[Part]] = {}

    @property
    def has_variables(self) -> bool:
        """Whether a tensor keeps its value from one invocation to the next."""
        return bool(self.graph.variables)

    @property
    def has_resources(self) -> bool:
        """Whether it uses resources or kernels that differ between two calls."""
        return any(
            step.node.operator in RESOURCES or (step.kernel is not None and step.kernel.stateful)
            for step in self._steps
        )

    @property
    def prefers_samples_last(self) -> bool:
        """Whether nodes run faster on images with samples last in memory, given enough samples."""
        return bool(self._samples_last)

    def computed(self) -> list[int]:
        """Return the tensors that its nodes write."""
        return [t for step in self._steps for t in step.node.outputs]

    def steps(self, kept: Sequence[int], alone: bool = False) -> list[Part]:
        """Return the steps, each with the tensors that are not needed after it.

        Args:
            kept: tensors that are needed at the end.
            alone: one by one, in numpy; else steps that compiled kernels take are joined to runs.

        Raises:
            GraphError: the program computes no such tensor.
        """
        key = (tuple(kept), alone)
        if key not in self._prepared:
            steps, kernels = self._prepare(key[0]), self.library.kernels
            self._prepared[key] = (
                [*steps] if alone or kernels is None else compiled_steps(self.graph, steps, kept, kernels)
            )
        return self._prepared[key]

    def _prepare(self, kept: tuple[int, ...]) -> list[Step]:
        known = {*self.constants, *self.graph.inputs, *self.graph.variables, *self.computed()}
        unknown = [t for t in kept if t not in known]
        if unknown:
            raise GraphError(f"tensor {unknown[0]} was asked for, but the graph computes no such tensor")
        needed = set(kept) | set(self.constants)
        steps: list[Step] = []
        for s in reversed(self._steps):
            touched = [t for t in dict.fromkeys(s.node.inputs + s.node.outputs) if t != ABSENT]
            release = tuple(t for t in touched if t not in needed)
            needed.update(touched)
            steps.append(Step(s.index, s.node, s.kernel, s.deferred, s.shapes, release))
        return steps[::-1]

    def run(
        self,
        inputs: Sequence[Value],
        samples: int,
        session: Session,
        kept: Sequence[int],
        steps: Sequence[Part],
        listeners: Sequence[Listener] = (),
    ) -> dict[int, Value]:
        """Run the steps.

        Args:
            inputs: values of the graph's inputs.
            samples: S.
            session: state; it is changed.
            kept: tensors to return.
            steps: Steps from `steps(kept)`.
            listeners: called around each step.

        Returns:
            Tensor index -> value.
        """
        values = _Values(self, session)
        values.update(zip(self.graph.inputs, inputs, strict=True))
        context = _Context(self, values)
        reorders = bool(self._samples_last) and samples >= SAMPLES_LAST_FROM and not listeners
        for part in steps:
            if isinstance(part, Step):
                alone: Sequence[Step] = (part,)
            else:
                made = part.run(values, samples)
                values.update(made or {})
                alone = part.steps if made is None else ()
            for step in alone:
                if reorders:
                    self._reorder(step, values)
                self._run_step(step, context, samples, listeners)
            for t in part.release:
                values.pop(t, None)
        return {t: _in_order(values[t], False) for t in kept} if reorders else {t: values[t] for t in kept}

    def _run_step(self, step: Step, context: _Context, samples: int, listeners: Sequence[Listener]) -> None:
        node, values = step.node, context.values
        operands = [None if t == ABSENT else values[t] for t in node.inputs]
        for listener in listeners:
            seen = [None if v is None else for_all_samples(v, samples) for v in operands]
            listener.will_run(step.index, node, seen)
        results = self._results(step, context, operands, samples)
        for listener in listeners:
            outputs = results[: len(node.outputs)]
            listener.did_run(step.index, node, [for_all_samples(v, samples) for v in outputs])
        for t, value in zip(node.outputs, results, strict=False):
            values[t] = value
            if self.graph.tensors[t].is_variable:
                context.session.variables[self.number, t] = value
        if len(results) > len(node.outputs):
            self._keep_state(node, results, context.session)

    def _results(
        self, step: Step, context: _Context, operands: Sequence[Value | None], samples: int
    ) -> Sequence[Value]:
        found = step.kernel
        try:
            if found is not None and not found.stateful and step.fits(operands):
                return found.run(step.node.params, *operands)
            return self._execute(step, context, operands, samples)
        except LimitError:
            raise
        except UnsupportedError as error:
            raise placed(error, self.graph.where(step.index)) from None

    def _reorder(self, step: Step, values: dict[int, Value]) -> None:
        """Bring the computed inputs of a step into the order in memory that it takes."""
        last = step.index in self._samples_last
        for t in step.node.inputs:
            if t in values and t not in self.constants:
                values[t] = _in_order(values[t], last)

    def _gains(self) -> dict[int, float]:
        """Return the gain of each node that takes images with samples last."""
        gains = {}
        for step in self._steps:
            if step.kernel is not None and step.kernel.samples_last is not None and step.shapes is not None:
                gain = step.kernel.samples_last(step.node.params, self.graph.operands(step.index))
                if gain is not None:
                    gains[step.index] = gain
        return gains

    def _execute(
        self, step: Step, context: _Context, operands: Sequence[Value | None], samples: int
    ) -> Sequence[Value]:
        """Execute a step; a kernel that differs between calls gets its last returned state after its inputs."""
        if step.kernel is None:
            present = [v for v in operands if v is not None]
            with limits.count_live_bytes(context.values.alive(samples)):
                return CONTROL[step.node.operator](context, step.node, present, samples)
        if not step.kernel.stateful:
            return _run_kernel(step, step.kernel, operands, samples, context.values)
        key = (self.number, step.index)
        inputs = [*operands, context.session.generators.get(key)]
        *results, state = _run_kernel(step, step.kernel, inputs, samples, context.values)
        context.session.generators[key] = state
        return results

    def _keep_state(self, node: Node, results: Sequence[Value], session: Session) -> None:
        variables = [t for t in node.inputs if t != ABSENT and self.graph.tensors[t].is_variable]
        for t, value in zip(variables, results[len(node.outputs) :], strict=True):
            session.variables[self.number, t] = value

    def _computed(self) -> list[int]:
        """Return the nodes that are not folded."""
        tensors = self.graph.tensors
        return [
            i
            for i, node in enumerate(self.graph.nodes)
            if not (node.outputs and all(tensors[t].is_constant for t in node.outputs))
        ]

    def _step(self, index: int) -> Step:
        node = self.graph.nodes[index]
        if node.operator in CONTROL:
            return Step(index, node, None, None, None, ())
        found = kernel(node.arithmetic or "", kernel_name(node))
        is_deferred = isinstance(node.params, Deferred)
        operands = self.graph.operands(index)
        if found.stateful:
            operands = replace(operands, inputs=(*operands.inputs, None))
        later = DeferredNode(node, operands, found)
        known = tuple((i, t.shape) for i, t in enumerate(operands.inputs) if t is not None and not t.is_constant)
        return Step(index, node, found, later, None if is_deferred else known, ())


def _in_order(value: Value, last: bool) -> Value:
    """Return a value with samples last or first in memory; other values are returned unchanged."""
    if not isinstance(value, np.ndarray):
        return value
    return to_samples_last(value) if last else to_samples_first(value)


class _Values(dict[int, Value]):
    """The values of one run: constants from the start, computed ones after their node, variables from the session."""

    def __init__(self, program: Program, session: Session) -> None:
        super().__init__(program.constants)
        self._program = program
        self.session = session

    def __missing__(self, t: int) -> Value:
        tensor = self._program.graph.tensors[t]
        if not tensor.is_variable:
            raise GraphError(f"tensor {t} '{tensor.name}' has no value")
        return self.session.variables.setdefault((self._program.number, t), fresh(tensor))

    def alive(self, samples: int) -> int:
        """Return the bytes of one sample of the computed values, and of the constants computed before the run."""
        computed = (bytes_of(value) for t, value in self.items() if t not in self._program.constants)
        return self._program.folded_bytes + sum(computed) // samples


class _Context:
    """Access of control operators to the other graphs and the state."""

    def __init__(self, program: Program, values: _Values) -> None:
        self._library = program.library
        self.values = values
        self.session = values.session

    def run_graph(self, graph: int, inputs: Sequence[Value], samples: int) -> list[Value]:
        program = self._library.program(graph)
        self.session.subgraph_runs += 1
        what = f"runs of subgraphs in one invocation (a loop without end?), the last of {graph} '{program.graph.name}'"
        limits.current().require("max_subgraph_runs", self.session.subgraph_runs, what)
        require_call(graph, program.graph, inputs)
        outputs = program.graph.outputs
        kept = tuple(dict.fromkeys(outputs))
        results = program.run(inputs, samples, self.session, kept, program.steps(kept))
        return [results[t] for t in outputs]


def fresh(tensor: Tensor) -> Array:
    """Return the initial value of a variable: 0, in int8 its zero point. Source: TFLite c/common.c, tensor reset."""
    is_int8 = tensor.dtype is DType.INT8 and isinstance(tensor.quantization, Affine)
    start = int(tensor.affine.zero_point[0]) if is_int8 else 0
    return np.full((1, *tensor.shape), start, tensor.dtype.storage)


def _run_kernel(
    step: Step, found: Kernel, operands: Sequence[Value | None], samples: int, values: _Values
) -> Sequence[Value]:
    if step.deferred is None or step.fits(operands):
        return found.run(step.node.params, *operands)
    with limits.count_live_bytes(values.alive(samples)):
        results = step.deferred.run(operands, samples)
        for result in results[: len(step.node.outputs)]:
            limits.require_room(bytes_of(result) // samples, "a result")
    return results


class Library:
    """The programs of a model's graphs, made when they are first needed."""

    def __init__(self, graphs: Sequence[Graph], arithmetic: str, kernels: Kernels | None = None) -> None:
        """Start without programs; `kernels` are compiled ones, None for numpy only."""
        self.graphs = name_computations(graphs)
        self.kernels = kernels
        self.arithmetic = arithmetic
        self.called = frozenset(g for graph in graphs for node in graph.nodes for g in called_graphs(node))
        self._programs: dict[int, Program] = {}

    def program(self, number: int) -> Program:
        """Return the program of a graph.

        Raises:
            GraphError: there is no such graph.
            UnsupportedError: an operator without a kernel.
        """
        if not 0 <= number < len(self.graphs):
            raise GraphError(f"subgraph {number} is out of range, the model has 0..{len(self.graphs) - 1}")
        if number not in self._programs:
            self._programs[number] = Program(self, number)
        return self._programs[number]

    def reachable(self, number: int) -> set[int]:
        """Return the graphs that graph `number` may run, itself included.

        Raises:
            GraphError: as `program`, or a graph runs itself, directly or through another graph. UnsupportedError: as
            `program`, or graphs run each other more levels deep than `max_depth`.
        """
        levels: dict[int, int] = {}
        self._visit(number, (), levels)
        return set(levels)

    def _visit(self, number: int, path: tuple[int, ...], levels: dict[int, int]) -> int:
        """Return the number of levels of graphs below and including a graph that is run by way of `path`."""
        if number in path:
            names = " -> ".join(map(str, (*path, number)))
            raise GraphError(f"subgraphs run each other in a circle: {names}; such a model never ends")
        allowed, what = limits.current(), f"levels of subgraphs that run each other, down to subgraph {number}"
        allowed.require("max_depth", len(path) + 1, what)
        if number not in levels:
            below = {called for node in self.program(number).graph.nodes for called in called_graphs(node)}
            levels[number] = 1 + max((self._visit(n, (*path, number), levels) for n in sorted(below)), default=0)
        allowed.require("max_depth", len(path) + levels[number], what)
        return levels[number]
