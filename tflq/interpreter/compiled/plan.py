"""Successive layers as one plan of kernels.c: which tensors are bytes or real numbers, their borders, their places."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.graph import ABSENT, Graph
from tflq.interpreter.compiled.buffers import NO_MARGINS, Buffer, Margins, image_of, joined, margins_of, placed
from tflq.interpreter.compiled.compiler import Library
from tflq.interpreter.compiled.forms import ByTable, Form, Move, Pool, form_of
from tflq.interpreter.compiled.layers import Packer
from tflq.interpreter.compiled.structures import CLayer, LayerKind
from tflq.interpreter.execution.step import Step
from tflq.interpreter.layers.linear import Linear

BATCH_BYTES = 1 << 18
"""Bytes of the arenas of samples that go through a layer together: they stay in the second-level cache."""
MOST_TOGETHER = 16
MOST_ARENA_BYTES = 1 << 30


@dataclass(frozen=True)
class Planned:
    """Layers ready to run.

    Attributes:
        layers: with reads in front and writes behind.
        owned: arrays that they point to.
        arena: of one batch, borders filled; a run works on a copy.
        sample_bytes: of one sample's arena.
        batch: samples of a batch.
    """

    layers: tuple[CLayer, ...]
    owned: tuple[object, ...]
    arena: NDArray[np.uint8]
    sample_bytes: int
    batch: int


@dataclass
class _Need:
    """What the readers of a tensor need of its buffer."""

    margins: Margins = NO_MARGINS
    pad: int = 0
    is_flat: bool = False

    def meets(self, margins: Margins, pad: int, is_flat: bool) -> bool:
        """Whether another reader can be added."""
        has_border = self.margins != NO_MARGINS or margins != NO_MARGINS
        if has_border and (self.is_flat or is_flat):
            return False
        return NO_MARGINS in (self.margins, margins) or self.pad == pad


class Run:
    """Collects layers while they fit each other."""

    def __init__(self, graph: Graph, library: Library) -> None:
        self.graph = graph
        self.library = library
        self.steps: list[Step] = []
        self.forms: list[Form] = []
        self._needs: dict[int, _Need] = {}

    def add(self, step: Step, form: Form) -> bool:
        """Take a step in; False where its needs contradict those of the others."""
        wanted = self._wanted(step, form)
        if not all(self._needs.get(t, _Need()).meets(m, pad, is_flat) for t, m, pad, is_flat in wanted):
            return False
        for t, margins, pad, is_flat in wanted:
            need = self._needs.setdefault(t, _Need())
            if margins != NO_MARGINS:
                need.margins, need.pad = joined((need.margins, margins)), pad
            need.is_flat |= is_flat
        self.steps.append(step)
        self.forms.append(form)
        return True

    def _wanted(self, step: Step, form: Form) -> list[tuple[int, Margins, int, bool]]:
        x, y = step.node.inputs[0], step.node.outputs[0]
        if isinstance(form, Linear):
            if form.window is None:
                return [(x, NO_MARGINS, 0, True), (y, NO_MARGINS, 0, True)]
            height, width, _ = image_of(self.graph.tensors[x])
            return [(x, margins_of(form.window, height, width), form.pad_value, False)]
        return [(x, NO_MARGINS, 0, True), (y, NO_MARGINS, 0, True)] if isinstance(form, Move) else []

    @property
    def reads(self) -> tuple[int, ...]:
        """The tensors that come from outside."""
        written = {t for step in self.steps for t in step.node.outputs}
        read = (t for step in self.steps for t in self._computed(step) if t not in written)
        return tuple(dict.fromkeys(read))

    def plan(self, kept: Collection[int]) -> Planned | None:
        """Place the tensors and pack the layers; None where they would take too much memory.

        Args:
            kept: written tensors that are needed outside.
        """
        buffers = self._buffers(kept)
        sample_bytes = max(b.at + b.size for b in buffers.values()) + 128
        sample_bytes = -(-sample_bytes // 64) * 64
        if sample_bytes > MOST_ARENA_BYTES:
            return None
        batch = min(max(BATCH_BYTES // sample_bytes, 1), MOST_TOGETHER)
        packer = Packer(self.library, sample_bytes, batch)
        layers = [packer.moved(LayerKind.READ, n, buffers[t]) for n, t in enumerate(self.reads)]
        for step, form in zip(self.steps, self.forms, strict=True):
            inputs = [buffers[t] for t in self._computed(step)]
            layers.append(_packed(packer, form, inputs, buffers[step.node.outputs[0]]))
        first = len(self.reads)
        layers += [packer.moved(LayerKind.WRITE, first + n, buffers[t]) for n, t in enumerate(kept)]
        arena = np.zeros((batch, sample_bytes), np.uint8)
        for sample in arena:
            for buffer in buffers.values():
                buffer.fill(sample)
        return Planned(tuple(layers), tuple(packer.owned), arena, sample_bytes, batch)

    def _computed(self, step: Step) -> list[int]:
        return [t for t in step.node.inputs if t != ABSENT and not self.graph.tensors[t].is_constant]

    def _buffers(self, kept: Collection[int]) -> dict[int, Buffer]:
        readers: dict[int, list[Form]] = {t: [] for t in self.reads}
        turns = dict.fromkeys(self.reads, (0, 0))
        for turn, (step, form) in enumerate(zip(self.steps, self.forms, strict=True), 1):
            for t in self._computed(step):
                readers[t].append(form)
                turns[t] = (turns[t][0], turn)
            for t in step.node.outputs:
                readers[t], turns[t] = [], (turn, turn)
        end = len(self.steps) + 1
        turns |= {t: (turns[t][0], end) for t in kept}
        buffers = {t: self._buffer(t, readers[t]) for t in readers}
        for t, buffer in buffers.items():
            if not buffer.is_flat:  # a border is filled once, so nothing else may lie there
                turns[t] = (0, end)
        at = placed([(buffer.size, *turns[t]) for t, buffer in buffers.items()])
        return {t: replace(buffer, at=a) for (t, buffer), a in zip(buffers.items(), at, strict=True)}

    def _buffer(self, t: int, readers: Sequence[Form]) -> Buffer:
        tensor, need = self.graph.tensors[t], self._needs.get(t, _Need())
        only_depthwise = bool(readers) and all(_is_depthwise(form) for form in readers)
        is_real = only_depthwise or not self.library.multiplies_bytes
        return Buffer(*image_of(tensor), tensor.dtype.minimum, is_real, need.margins, need.pad)


def runs_of(graph: Graph, steps: Sequence[Step], library: Library) -> list[Run | Step]:
    """Gather neighbouring steps that kernels.c takes; the others stay as they are."""
    found: list[Run | Step] = []
    for step in steps:
        form = form_of(graph, step, library.multiplies_bytes)
        if form is None:
            found.append(step)
            continue
        last = found[-1] if found else None
        if not (isinstance(last, Run) and last.add(step, form)):
            alone = Run(graph, library)
            found.append(alone if alone.add(step, form) else step)
    return found


def _is_depthwise(form: Form) -> bool:
    return isinstance(form, Linear) and form.groups > 1


def _packed(packer: Packer, form: Form, inputs: list[Buffer], y: Buffer) -> CLayer:
    if isinstance(form, Pool):
        return packer.pool(form, inputs[0], y)
    if isinstance(form, ByTable):
        return packer.by_table(form, inputs, y)
    if isinstance(form, Move):
        return packer.copied(inputs[0], y)
    if form.window is None:
        return packer.product(form, inputs[0], y)
    return (packer.depthwise if _is_depthwise(form) else packer.convolution)(form, form.window, inputs[0], y)
