"""The model that a worker holds: loaded, prepared for some input shapes, run over samples."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tflq.analysis.oracle import protocol
from tflq.analysis.oracle.results import OracleTensor
from tflq.analysis.oracle.runtime import Runtime, TfliteModel
from tflq.arrays import Array


class Session:
    """One `Load` and what follows it. Whatever TFLite raises goes through; the session is then of no more use."""

    def __init__(self, runtime: Runtime, load: protocol.Load, pulse: Callable[[], None]) -> None:
        self._runtime = runtime
        self._content = load.content.tobytes()
        self._load = load
        self._pulse = pulse
        self._shapes: tuple[tuple[int, ...] | None, ...] = ()
        self._prepared = False
        self._model = self._open()
        self._stateful = self._model.is_stateful()
        self._inputs = tuple(self._model.interface.inputs.values())

    def _open(self) -> TfliteModel:
        return self._runtime.open(self._content, self._load.signature, self._load.preserve)

    def loaded(self) -> protocol.Loaded:
        """Describe the model. What has data before memory is planned has it from the file: these are the constants."""
        tensors, interface = self._model.describe(), self._model.interface
        constants = frozenset(t.index for t in tensors if t.index not in self._inputs and self._has_data(t))
        return protocol.Loaded(tensors, interface.inputs, interface.outputs, constants, self._model.signatures)

    def _has_data(self, tensor: OracleTensor) -> bool:
        if 0 in tensor.shape or tensor.dtype in (
            "str",
            "resource",
        ):  # TFLite dereferences null for strings without data
            return False
        try:
            self._model.read(tensor.index)
        except (ValueError, RuntimeError):
            return False
        return True

    def prepare(self, request: protocol.Prepare) -> protocol.Prepared:
        """Resize the inputs and plan the memory, from the file's shapes on: earlier ones leave no trace."""
        if self._prepared:
            self._model = self._open()
        self._shapes, self._prepared = request.shapes, True
        self._allocate()
        return protocol.Prepared(self._model.describe())

    def _allocate(self) -> None:
        for index, shape in zip(self._inputs, self._shapes, strict=True):
            if shape is not None:
                self._model.resize(index, shape)
        self._model.allocate()

    def run(self, request: protocol.Run) -> protocol.Ran:
        """Run the samples one after another and collect the wanted tensors."""
        found: dict[int, list[Array]] = {index: [] for index in request.wanted}
        unavailable: dict[int, str] = {}
        for sample in range(request.samples):
            if request.fresh or (request.first and sample == 0):
                self._clear_state()
            self._invoke(request.inputs, sample)
            for index in list(found):
                try:
                    found[index].append(self._model.read(index))
                except (ValueError, RuntimeError) as error:
                    unavailable[index] = f"sample {sample}: {error}" if sample else str(error)
                    del found[index]
            self._pulse()
        return _stack(found, unavailable)

    def _clear_state(self) -> None:
        if self._stateful:
            self._model = self._open()
            self._allocate()
        else:
            self._model.reset_variables()

    def _invoke(self, inputs: tuple[Array, ...], sample: int) -> None:
        try:
            self._write(inputs, sample)
            self._model.invoke()
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"sample {sample}: {error}") from error

    def _write(self, inputs: tuple[Array, ...], sample: int) -> None:
        for index, values in zip(self._inputs, inputs, strict=True):
            self._model.write(index, np.asarray(values[sample]))

    def time(self, request: protocol.Time) -> protocol.Timed:
        """Measure Invoke alone."""
        seconds = []
        for turn in range(request.repeats + 1):
            self._write(request.inputs, turn % request.samples)
            begin = time.perf_counter()
            self._model.invoke()
            seconds.append(time.perf_counter() - begin)
            self._pulse()
        return protocol.Timed(tuple(seconds[1:]))


def _stack(found: dict[int, list[Array]], unavailable: dict[int, str]) -> protocol.Ran:
    tensors, ragged = {}, {}
    for index, arrays in found.items():
        if len({(array.shape, array.dtype) for array in arrays}) == 1:
            tensors[index] = np.stack(arrays)
        else:
            ragged[index] = tuple(arrays)
    return protocol.Ran(tensors, ragged, unavailable)
