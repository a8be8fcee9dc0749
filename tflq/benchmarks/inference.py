"""One inference as a device under test makes it: bytes in, real numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.executions import Execution
from tflq.benchmarks.accuracy import real_outputs
from tflq.benchmarks.anomaly import squared_errors
from tflq.benchmarks.tasks import Task
from tflq.errors import InputError
from tflq.graph import Array


@dataclass(frozen=True)
class Inference:
    """What the submitter implements in mlcommons' API (benchmark/api/submitter_implemented.h).

    Attributes:
        task: says what the bytes hold and what is answered.
        execution: the model in some arithmetic.
    """

    task: Task
    execution: Execution

    def check(self) -> None:
        """Check that the model takes the task's samples.

        Raises:
            InputError: it does not.
        """
        self.task.check(self.execution.source)

    @property
    def input_bytes(self) -> tuple[int, ...]:
        """The sizes that one sample may have: one for each type that the task's files may hold."""
        return tuple(self.task.size * np.dtype(kind).itemsize for kind in self.task.stored)

    def stored(self, data: bytes) -> Array:
        """Return the params of one sample, dtype[1, *task's shape].

        Raises:
            InputError: another number of bytes.
        """
        if len(data) not in self.input_bytes:
            allowed = " or ".join(map(str, self.input_bytes))
            raise InputError(f"Input db has {len(data)} bytes, expected {allowed}")
        kind = self.task.stored_dtype(len(data))
        return np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False).reshape(1, *self.task.shape)

    def load(self, stored: Array) -> list[Array]:
        """Return the graph's inputs for the numbers of samples (th_load_tensor)."""
        source = self.execution.source
        return self.execution.encode([self.task.encode(stored, source.tensors[source.inputs[0]])])

    def run(self, inputs: Sequence[Array]) -> Array:
        """Run the graph (th_infer) and return its first output, dtype[S, *shape]."""
        output = self.execution.graph.outputs[0]
        return self.execution.engine.run(inputs, [output])[output]

    def answers(self, samples: Sequence[Array]) -> NDArray[np.float64]:
        """Return the outputs, real[S, values], for samples in the encoding of the source's input."""
        return real_outputs(self.execution, self.run(self.execution.encode(samples)))

    def results(self, stored: Array, outputs: Array) -> NDArray[np.float32]:
        """Return what a device answers (th_results), float32[S, values].

        The outputs as real numbers; for anomalies one value, the mean squared error against the input.
        """
        reals = real_outputs(self.execution, outputs)
        if not self.task.is_anomaly:
            return reals.astype(np.float32)
        return squared_errors(stored.reshape(len(stored), -1).astype(np.float32), reals)[:, None]
