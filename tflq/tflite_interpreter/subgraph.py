"""One graph with its values: what TFLite calls a subgraph of an interpreter."""

from __future__ import annotations

import numpy as np

from tflq.errors import InputError
from tflq.graph import Array, DType, Model, Tensor
from tflq.interpreter import Engine
from tflq.interpreter.execution.resize import resize
from tflq.interpreter.execution.session import Session
from tflq.tflite_interpreter.details import TensorDetails, tensor_details


class Subgraph:
    """A graph of a model, prepared for the present shapes of its inputs, and the values of its tensors."""

    def __init__(self, model: Model, number: int, session: Session) -> None:
        self._model = model
        self._number = number
        self._session = session
        self.graph = model.graphs[number]
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._engine: Engine | None = None
        self._values: dict[int, Array] = {}

    @property
    def allocated(self) -> bool:
        """Whether it is ready to run."""
        return self._engine is not None

    def allocate(self) -> None:
        """Prepare for the present shapes; inputs are 0, and variables start anew.

        Raises:
            UnsupportedError: an operator or type without a kernel.
            GraphError: shapes that do not fit.
        """
        original = self._model.graphs[self._number]
        self.graph = resize(original, self._shapes) if self._shapes else original
        family = list(self._model.graphs)
        family[self._number] = self.graph
        self._engine = Engine(self.graph, graphs=family, state="stream", session=self._session)
        for key in [key for key in self._session.variables if key[0] == self._number]:
            del self._session.variables[key]
        self._values = {t: _nothing(self.graph.tensors[t]) for t in self.graph.inputs}

    def ready(self) -> Engine:
        """Return the engine.

        Raises:
            InputError: it is not allocated.
        """
        if self._engine is None:
            raise InputError("the tensors are not allocated: call allocate_tensors() first")
        return self._engine

    def resize(self, t: int, shape: tuple[int, ...], strict: bool) -> None:
        """Give an input another shape.

        Raises:
            InputError: it is no input, or `strict` forbids the shape.
        """
        tensor = self._input(t)
        if min(shape, default=0) < 0:
            raise InputError(f"input '{tensor.name}': shape {shape}; sizes must be 0 or more")
        signature = tensor.shape_signature or tensor.shape
        fits = len(shape) == len(signature) and all(s in (-1, n) for s, n in zip(signature, shape, strict=True))
        if strict and not fits:
            raise InputError(f"input '{tensor.name}': {shape} is not allowed by its shape signature {signature}")
        if shape != self.shape(t):
            self._shapes[t] = shape
            self._engine = None

    def set(self, t: int, value: Array) -> None:
        """Copy a value into an input.

        Raises:
            InputError: it is no input, not allocated, or the value has another type or shape.
        """
        self.ready()
        tensor = self._input(t)
        if tensor.dtype is DType.STRING and value.dtype.kind in "SUO":
            value = _strings(value)
        if value.dtype != tensor.dtype.storage or value.shape != tensor.shape:
            raise InputError(
                f"input '{tensor.name}': found {value.dtype}{list(value.shape)}, "
                f"the model takes {tensor.dtype.value}{list(tensor.shape)}"
            )
        self._values[t] = value.copy()

    def invoke(self) -> None:
        """Run once.

        Raises:
            InputError: it is not allocated.
        """
        engine = self.ready()
        computed = [t for node in engine.graph.nodes for t in node.outputs]
        results = engine.run([self._values[t][None] for t in engine.graph.inputs], keep=computed)
        self._values.update((t, value[0]) for t, value in results.items())

    def get(self, t: int) -> Array:
        """Return the present value of a tensor, not copied.

        Raises:
            InputError: there is no such tensor, or it has no value yet.
        """
        tensor = self._tensor(t)
        if tensor.data is not None:
            return tensor.data
        if t not in self._values:
            raise InputError(f"tensor {t} '{tensor.name}' has no value yet: call invoke() first")
        return self._values[t]

    def shape(self, t: int) -> tuple[int, ...]:
        """Return the present shape of a tensor: that of its value, where there is one."""
        if self._engine is not None and t in self._values:
            return self._values[t].shape
        return self._shapes.get(t, self._tensor(t).shape)

    def details(self, t: int) -> TensorDetails:
        """Return the details of a tensor."""
        return tensor_details(self.graph, t, self.shape(t))

    def _tensor(self, t: int) -> Tensor:
        if not 0 <= t < len(self.graph.tensors):
            raise InputError(f"tensor {t} does not exist, tensors are 0..{len(self.graph.tensors) - 1}")
        return self.graph.tensors[t]

    def _input(self, t: int) -> Tensor:
        if t not in self.graph.inputs:
            raise InputError(f"tensor {t} is no input of the model; inputs are {list(self.graph.inputs)}")
        return self.graph.tensors[t]


def _nothing(tensor: Tensor) -> Array:
    value: Array = np.zeros(tensor.shape, tensor.dtype.storage)
    if tensor.dtype is DType.STRING:
        value.fill(b"")
    return value


def _strings(value: Array) -> Array:
    """Return strings of any kind as an object array of bytes, text as UTF-8."""
    result: Array = np.empty(value.shape, object)
    flat = [text.encode() if isinstance(text, str) else bytes(text) for text in value.reshape(-1).tolist()]
    result.reshape(-1)[:] = np.array(flat, object) if flat else []
    return result
