"""Successive layers as one plan of kernels.c: which tensors are bytes or float32, their borders, their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.graph import ABSENT, Graph
from tflq.interpreter.compiled.buffers import NO_MARGINS, Buffer, Margins, image_of, joined, margins_of, placed
from tflq.interpreter.compiled.compiler import CLayer, LayerKind, Library
from tflq.interpreter.compiled.forms import ByExponentials, ByTable, Form, Move, OfQuantized, Pool, form_of
from tflq.interpreter.compiled.layers import Packer
from tflq.interpreter.compiled.reals import ByLine, ByThresholds, ToReals
from tflq.interpreter.execution.lowering import Step
from tflq.interpreter.layers.linear import Linear
from tflq.interpreter.layers.reals import RealSum

BATCH_BYTES = 1 << 18
"""Bytes of the arenas of samples that go through a layer together: they stay in the second-level cache."""
MOST_TOGETHER = 16
MOST_ARENA_BYTES = 1 << 30


@dataclass(frozen=True)
class Planned:
    """Layers ready to run.

    Attributes:
        layers: Layers, with reads before and writes after.
        owned: arrays that they point to.
        arena: Memory of one batch, borders filled; a run works on a copy.
        sample_bytes: Size of one sample's arena, in bytes.
        batch: samples of a batch.
    """

    layers: tuple[CLayer, ...]
    owned: tuple[object, ...]
    arena: NDArray[np.uint8]
    sample_bytes: int
    batch: int


@dataclass
class _Need:
    """Requirements of the readers of a tensor on its buffer."""

    margins: Margins = NO_MARGINS
    pad: int = 0
    is_flat: bool = False

    def meets(self, margins: Margins, pad: int, is_flat: bool) -> bool:
        """Whether another reader can be added."""
        has_border = self.margins != NO_MARGINS or margins != NO_MARGINS
        if has_border and (self.is_flat or is_flat):
            return False
        return NO_MARGINS in (self.margins, margins) or self.pad == pad

    def add(self, margins: Margins, pad: int, is_flat: bool) -> None:
        """Add another reader, which `meets` these."""
        if margins != NO_MARGINS:
            self.margins, self.pad = joined((self.margins, margins)), pad
        self.is_flat |= is_flat


@dataclass(frozen=True)
class _Folded:
    """Steps that need no separate layer.

    Attributes:
        same: tensor -> the tensor that shares its buffer.
        clamps: turn of a linear layer -> the clamp after it.
        needs: Needs of buffers, for all tensors stored in them.
    """

    same: dict[int, int]
    clamps: dict[int, tuple[int, int]]
    needs: dict[int, _Need]


class Run:
    """Collects layers while they fit each other."""

    def __init__(self, graph: Graph, library: Library) -> None:
        self.graph = graph
        self.library = library
        self.steps: list[Step] = []
        self.forms: list[Form] = []
        self._needs: dict[int, _Need] = {}

    def add(self, step: Step, form: Form) -> bool:
        """Add a step; False if its needs contradict those of the other steps."""
        wanted, written = self._wanted(step, form), {t for own in self.steps for t in own.node.outputs}
        if isinstance(form, RealSum) and any(self._is_real(t) and t not in written for t in step.node.inputs):
            return False  # any float32 values may be read from outside
        if not all(self._needs.get(t, _Need()).meets(m, pad, is_flat) for t, m, pad, is_flat in wanted):
            return False
        for t, margins, pad, is_flat in wanted:
            self._needs.setdefault(t, _Need()).add(margins, pad, is_flat)
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
        return [(x, NO_MARGINS, 0, True), (y, NO_MARGINS, 0, True)] if isinstance(form, Move | ByExponentials) else []

    @property
    def reads(self) -> tuple[int, ...]:
        """Tensors that are read from outside."""
        written = {t for step in self.steps for t in step.node.outputs}
        read = (t for step in self.steps for t in self._computed(step) if t not in written)
        return tuple(dict.fromkeys(read))

    def plan(self, kept: Collection[int]) -> Planned | None:
        """Place the tensors and pack the layers; None if they would take too much memory.

        Args:
            kept: written tensors that are needed outside.
        """
        folded = self._folded(kept)
        buffers = self._buffers(kept, folded)
        sample_bytes = max(b.at + b.size for b in buffers.values()) + 128
        sample_bytes = -(-sample_bytes // 64) * 64
        if sample_bytes > MOST_ARENA_BYTES:
            return None
        batch = min(max(BATCH_BYTES // sample_bytes, 1), MOST_TOGETHER)
        packer = Packer(self.library, sample_bytes, batch)
        layers = [packer.moved(LayerKind.READ, n, buffers[t]) for n, t in enumerate(self.reads) if t in buffers]
        for turn, (step, form) in enumerate(zip(self.steps, self.forms, strict=True)):
            y = step.node.outputs[0]
            if isinstance(form, ByThresholds | ByLine):
                layers.append(packer.of_reals(form, self.reads.index(step.node.inputs[0]), buffers[y]))
                continue
            inputs = [buffers[t] for t in self._computed(step)]
            if y not in folded.same:
                layers.append(_packed(packer, form, inputs, buffers[y], folded.clamps.get(turn)))
        for n, t in enumerate(kept, len(self.reads)):
            kind = LayerKind.WRITE_REALS if self._is_real(t) else LayerKind.WRITE
            layers.append(packer.moved(kind, n, buffers[t]))
        arena = np.zeros((batch, sample_bytes), np.uint8)
        for sample in arena:
            for buffer in buffers.values():
                buffer.fill(sample)
        return Planned(tuple(layers), tuple(packer.owned), arena, sample_bytes, batch)

    def _computed(self, step: Step) -> list[int]:
        return [t for t in step.node.inputs if t != ABSENT and not self.graph.tensors[t].is_constant]

    def _is_real(self, t: int) -> bool:
        return self.graph.tensors[t].dtype.is_floating

    def _folded(self, kept: Collection[int]) -> _Folded:
        """Find the functions that need no layer: identities, and clamps of tensors without another reader."""
        found, made = _Folded({}, {}, {t: replace(need) for t, need in self._needs.items()}), dict[int, int]()
        readers = Counter(t for step in self.steps for t in self._computed(step))
        for turn, (step, form) in enumerate(zip(self.steps, self.forms, strict=True)):
            y = step.node.outputs[0]
            made[y] = turn
            if not isinstance(form, ByTable) or form.clamp is None:
                continue
            x = self._computed(step)[0]
            dtype, source = self.graph.tensors[x].dtype, made.get(x, -1)
            is_idle = form.clamp == (dtype.minimum, dtype.maximum)
            made_by = self.forms[source]
            is_pair = isinstance(made_by, ByTable) and made_by.clamp is None
            can_clamp = (isinstance(made_by, Linear) or is_pair) and source not in found.clamps
            if not is_idle and not (source >= 0 and can_clamp and readers[x] == 1 and x not in kept):
                continue
            root, own = found.same.get(x, x), found.needs.get(y, _Need())
            need = found.needs.setdefault(root, _Need())
            if need.meets(own.margins, own.pad, own.is_flat):
                need.add(own.margins, own.pad, own.is_flat)
                found.same[y] = root
                if is_idle:
                    made[y] = source if readers[x] == 1 and x not in kept else -1
                else:
                    found.clamps[source] = form.clamp
        return found

    def _buffers(self, kept: Collection[int], folded: _Folded) -> dict[int, Buffer]:
        same = folded.same
        turns = {t: (0, 0) for t in self.reads if not self._is_real(t)}
        for turn, step in enumerate(self.steps, 1):
            y = step.node.outputs[0]
            if y in same:
                continue
            for t in (same.get(t, t) for t in self._computed(step)):
                if t in turns:  # float32 values are read in place
                    turns[t] = (turns[t][0], turn)
            turns[y] = (turn, turn)
        end = len(self.steps) + 1
        turns |= {same.get(t, t): (turns[same.get(t, t)][0], end) for t in kept}
        buffers = {t: self._buffer(t, folded.needs.get(t, _Need())) for t in turns}
        at = placed([(buffer, *turns[t]) for t, buffer in buffers.items()])
        found = {t: replace(buffer, at=a) for (t, buffer), a in zip(buffers.items(), at, strict=True)}
        return found | {t: found[root] for t, root in same.items()}

    def _buffer(self, t: int, need: _Need) -> Buffer:
        tensor, is_real = self.graph.tensors[t], self._is_real(t) or not self.library.multiplies_bytes
        least = 0 if self._is_real(t) else tensor.dtype.minimum
        return Buffer(*image_of(tensor), least, is_real, need.margins, need.pad)


def runs_of(graph: Graph, steps: Sequence[Step], library: Library) -> list[Run | Step]:
    """Gather neighboring steps that kernels.c takes; the other steps are kept unchanged."""
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


def _packed(
    packer: Packer, form: OfQuantized | RealSum, inputs: list[Buffer], y: Buffer, clamp: tuple[int, int] | None
) -> CLayer:
    if isinstance(form, ToReals):
        return packer.to_reals(form, inputs[0], y)
    if isinstance(form, RealSum):
        return packer.real_sum(form, inputs, y)
    if isinstance(form, Pool):
        return packer.pool(form, inputs[0], y)
    if isinstance(form, ByTable):
        return packer.by_table(form, inputs, y, clamp)
    if isinstance(form, ByExponentials):
        return packer.by_exponentials(form, inputs[0], y)
    if isinstance(form, Move):
        return packer.copied(inputs[0], y)
    if form.window is None:
        return packer.product(form, inputs[0], y, clamp)
    return (packer.depthwise if _is_depthwise(form) else packer.convolution)(form, form.window, inputs[0], y, clamp)
