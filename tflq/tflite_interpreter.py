"""`tflq.Interpreter`: the interface of `tf.lite.Interpreter` on this project's engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite import model_from_bytes, read_model
from tflq.errors import InputError, OptionError
from tflq.graph import Affine, Array, Model, Signature, Tensor
from tflq.interpreter import Engine
from tflq.interpreter.resize import resize


class QuantizationParameters(TypedDict):
    """Scales, zero points and axis; empty arrays where the tensor is not quantised."""

    scales: NDArray[np.float32]
    zero_points: NDArray[np.int32]
    quantized_dimension: int


class TensorDetails(TypedDict):
    """What is known of a tensor, under TFLite's names."""

    name: str
    index: int
    shape: NDArray[np.int32]
    shape_signature: NDArray[np.int32]
    dtype: type[np.generic]
    quantization: tuple[float, int]
    quantization_parameters: QuantizationParameters
    sparsity_parameters: dict[str, object]


class Interpreter:
    """Runs a .tflite model sample by sample, as tf.lite.Interpreter does, or over many samples at once.

    Integers equal those of TFLite's reference kernels bit for bit, and `get_tensor` is right for every tensor,
    intermediate ones too.

    Args:
        model_path: a .tflite file.
        model_content: the bytes of one, instead of a path.
        num_threads: accepted for compatibility; results never depend on it.
        experimental_preserve_all_tensors: accepted for compatibility; all tensors are always kept.

    Raises:
        OptionError: neither or both of model_path and model_content are given.
        InputError: the file cannot be read.
        FormatError: it is no .tflite file, or a damaged one.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        *,
        num_threads: int | None = None,  # noqa: ARG002
        experimental_preserve_all_tensors: bool = True,  # noqa: ARG002
    ) -> None:
        if (model_path is None) == (model_content is None):
            raise OptionError("give either model_path or model_content, not both and not neither")
        self._model = read_model(model_path) if model_path is not None else model_from_bytes(model_content or b"")
        self._subgraph = _Subgraph(self._model, 0)

    @property
    def model(self) -> Model:
        """The model as read."""
        return self._model

    def allocate_tensors(self) -> None:
        """Prepare the model for the present input shapes.

        Raises:
            UnsupportedError: an operator or type without a kernel.
            GraphError: resized inputs that do not fit.
        """
        self._subgraph.allocate()

    def get_input_details(self) -> list[TensorDetails]:
        """Return the details of the inputs, in order."""
        return [self._subgraph.details(t) for t in self._subgraph.graph.inputs]

    def get_output_details(self) -> list[TensorDetails]:
        """Return the details of the outputs, in order."""
        return [self._subgraph.details(t) for t in self._subgraph.graph.outputs]

    def get_tensor_details(self) -> list[TensorDetails]:
        """Return the details of every tensor."""
        return [self._subgraph.details(t) for t in range(len(self._subgraph.graph.tensors))]

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Give an input another shape; `allocate_tensors` must follow.

        Args:
            input_index: tensor index of the input.
            tensor_size: the new shape.
            strict: allow only sizes that the model leaves open (-1 in its shape signature) to change.

        Raises:
            InputError: the tensor is no input, or `strict` forbids the change.
        """
        self._subgraph.resize(input_index, tuple(int(size) for size in tensor_size), strict)

    def set_tensor(self, tensor_index: int, value: Array) -> None:
        """Copy a value into an input: dtype[*shape].

        Raises:
            InputError: the tensor is no input, or the value has another type or shape.
        """
        self._subgraph.set(tensor_index, np.asarray(value))

    def invoke(self) -> None:
        """Run the model once.

        Raises:
            InputError: `allocate_tensors` was not called.
        """
        self._subgraph.invoke()

    def get_tensor(self, tensor_index: int) -> Array:
        """Return a copy of a tensor's value: dtype[*shape].

        Raises:
            InputError: there is no such tensor, or it has no value yet.
        """
        value: Array = self._subgraph.get(tensor_index).copy()
        return value

    def reset_all_variables(self) -> None:
        """Forget the state that successive invocations have built up."""
        self._subgraph.ready().reset()

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that returns the tensor's present value."""
        return lambda: self._subgraph.get(tensor_index)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return signature key -> {"inputs": names, "outputs": names}."""
        return {s.key: {"inputs": sorted(s.inputs), "outputs": sorted(s.outputs)} for s in self._model.signatures}

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a function that takes a signature's inputs by name and returns its outputs by name.

        Args:
            signature_key: may be left out where the model has just one.

        Raises:
            OptionError: there is no such signature.
        """
        found = [s for s in self._model.signatures if signature_key in (None, s.key)]
        if len(found) != 1:
            keys = ", ".join(s.key for s in self._model.signatures) or "none"
            raise OptionError(f"signature {signature_key!r} is not one of the model's signatures: {keys}")
        return SignatureRunner(self._model, found[0])

    def run_samples(self, inputs: Sequence[Array], tensors: Collection[int] | None = None) -> dict[int, Array]:
        """Run many samples at once.

        Args:
            inputs: for each input dtype[S, *shape].
            tensors: tensor indices to return; None for the outputs.

        Returns:
            Tensor index -> dtype[S, *shape].

        Raises:
            InputError: an array that does not fit, or `allocate_tensors` was not called.
        """
        return self._subgraph.ready().run(inputs, tensors)


class SignatureRunner:
    """Calls one signature: `runner(x=...)` returns {name: value}."""

    def __init__(self, model: Model, signature: Signature) -> None:
        self._signature = signature
        self._subgraph = _Subgraph(model, signature.graph)

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Run once; an input whose shape differs from the model's resizes it.

        Raises:
            InputError: names that do not match, or values that do not fit.
        """
        known = self._signature.inputs
        if inputs.keys() != known.keys():
            raise InputError(f"signature '{self._signature.key}' takes {sorted(known)}, found {sorted(inputs)}")
        arrays = {known[name]: np.asarray(value) for name, value in inputs.items()}
        for t, value in arrays.items():
            if value.shape != self._subgraph.graph.tensors[t].shape:
                self._subgraph.resize(t, value.shape, strict=False)
        if not self._subgraph.allocated:
            self._subgraph.allocate()
        for t, value in arrays.items():
            self._subgraph.set(t, value)
        self._subgraph.invoke()
        return {name: self._subgraph.get(t).copy() for name, t in self._signature.outputs.items()}

    def get_input_details(self) -> dict[str, TensorDetails]:
        """Return name -> details of each input."""
        return {name: self._subgraph.details(t) for name, t in self._signature.inputs.items()}

    def get_output_details(self) -> dict[str, TensorDetails]:
        """Return name -> details of each output."""
        return {name: self._subgraph.details(t) for name, t in self._signature.outputs.items()}


class _Subgraph:
    """One graph with its values: what TFLite calls a subgraph of an interpreter."""

    def __init__(self, model: Model, number: int) -> None:
        self._model = model
        self._number = number
        self.graph = model.graphs[number]
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._engine: Engine | None = None
        self._values: dict[int, Array] = {}

    @property
    def allocated(self) -> bool:
        return self._engine is not None

    def allocate(self) -> None:
        original = self._model.graphs[self._number]
        self.graph = resize(original, self._shapes) if self._shapes else original
        family = list(self._model.graphs)
        family[self._number] = self.graph
        self._engine = Engine(self.graph, graphs=family, state="stream")
        self._values = {
            t: np.zeros(self.graph.tensors[t].shape, self.graph.tensors[t].dtype.storage) for t in self.graph.inputs
        }

    def ready(self) -> Engine:
        if self._engine is None:
            raise InputError("the tensors are not allocated: call allocate_tensors() first")
        return self._engine

    def resize(self, t: int, shape: tuple[int, ...], strict: bool) -> None:
        tensor = self._input(t)
        signature = tensor.shape_signature or tensor.shape
        if strict and (
            len(shape) != len(signature) or any(s not in (-1, n) for s, n in zip(signature, shape, strict=True))
        ):
            raise InputError(f"input '{tensor.name}': {shape} is not allowed by its shape signature {signature}")
        self._shapes[t] = shape
        self._engine = None

    def set(self, t: int, value: Array) -> None:
        self.ready()
        tensor = self._input(t)
        if value.dtype != tensor.dtype.storage or value.shape != tensor.shape:
            raise InputError(
                f"input '{tensor.name}': found {value.dtype}{list(value.shape)}, "
                f"the model takes {tensor.dtype.value}{list(tensor.shape)}"
            )
        self._values[t] = value.copy()

    def invoke(self) -> None:
        engine = self.ready()
        computed = [t for node in engine.graph.nodes for t in node.outputs]
        results = engine.run([self._values[t][None] for t in engine.graph.inputs], keep=computed)
        self._values.update((t, value[0]) for t, value in results.items())

    def get(self, t: int) -> Array:
        if not 0 <= t < len(self.graph.tensors):
            raise InputError(f"tensor {t} does not exist, tensors are 0..{len(self.graph.tensors) - 1}")
        data = self.graph.tensors[t].data
        if data is not None:
            return data
        if t not in self._values:
            raise InputError(f"tensor {t} '{self.graph.tensors[t].name}' has no value yet: call invoke() first")
        return self._values[t]

    def details(self, t: int) -> TensorDetails:
        return _details(t, self.graph.tensors[t])

    def _input(self, t: int) -> Tensor:
        if t not in self.graph.inputs:
            raise InputError(f"tensor {t} is no input of the model; inputs are {list(self.graph.inputs)}")
        return self.graph.tensors[t]


def _details(index: int, tensor: Tensor) -> TensorDetails:
    affine = tensor.quantisation if isinstance(tensor.quantisation, Affine) else None
    scales = np.zeros(0, np.float32) if affine is None else affine.scale.astype(np.float32)
    zero_points = np.zeros(0, np.int32) if affine is None else affine.zero_point.astype(np.int32)
    single = scales.size == 1
    return TensorDetails(
        name=tensor.name,
        index=index,
        shape=np.array(tensor.shape, np.int32),
        shape_signature=np.array(tensor.shape_signature or tensor.shape, np.int32),
        dtype=tensor.dtype.storage.type,
        quantization=(float(scales[0]), int(zero_points[0])) if single else (0.0, 0),
        quantization_parameters=QuantizationParameters(
            scales=scales,
            zero_points=zero_points,
            quantized_dimension=0 if affine is None else affine.axis or 0,
        ),
        sparsity_parameters={},
    )
