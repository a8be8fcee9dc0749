"""`tflq.Interpreter`: the interface of `tf.lite.Interpreter` on this project's engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tflq.converters.tflite import model_from_bytes, read_model
from tflq.errors import InputError, OptionError
from tflq.graph import Array, Model
from tflq.interpreter.execution.session import Session
from tflq.tflite_interpreter.details import TensorDetails
from tflq.tflite_interpreter.signature_runner import SignatureRunner
from tflq.tflite_interpreter.subgraph import Subgraph


class Interpreter:
    """Runs a .tflite model sample by sample, as tf.lite.Interpreter does, or over many samples at once.

    Integers equal those of TFLite's reference kernels bit for bit, and `get_tensor` is right for every tensor,
    intermediate ones too.

    Args:
        model_path: a .tflite file.
        model_content: the bytes of one, instead of a path.
        num_threads: accepted for compatibility; results never depend on it.
        experimental_op_resolver_type: accepted for compatibility; the kernels are always those of BUILTIN_REF.
        experimental_preserve_all_tensors: accepted for compatibility; all tensors are always kept.
        experimental_delegates: none can be used.

    Raises:
        OptionError: neither or both of model_path and model_content are given, or a delegate is.
        InputError: the file cannot be read.
        FormatError: it is no .tflite file, or a damaged one.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[object] | None = None,
        num_threads: int | None = None,  # noqa: ARG002
        experimental_op_resolver_type: object = None,  # noqa: ARG002
        experimental_preserve_all_tensors: bool = True,  # noqa: ARG002
    ) -> None:
        if experimental_delegates:
            raise OptionError("delegates cannot be used: the kernels are this project's own")
        if (model_path is None) == (model_content is None):
            raise OptionError("give either model_path or model_content, not both and not neither")
        self._model = read_model(model_path) if model_path is not None else model_from_bytes(model_content or b"")
        self._session = Session()
        self._subgraphs = [Subgraph(self._model, number, self._session) for number in range(len(self._model.graphs))]
        self._subgraph = self._subgraphs[0]

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

    def get_tensor_details(self, subgraph_index: int = 0) -> list[TensorDetails]:
        """Return the details of every tensor of a subgraph.

        Raises:
            InputError: there is no such subgraph.
        """
        subgraph = self._find(subgraph_index)
        return [subgraph.details(t) for t in range(len(subgraph.graph.tensors))]

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return len(self._subgraphs)

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

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """Return a copy of a tensor's value: dtype[*shape].

        Raises:
            InputError: there is no such tensor or subgraph, or it has no value yet.
        """
        value: Array = self._find(subgraph_index).get(tensor_index).copy()
        return value

    def reset_all_variables(self) -> None:
        """Set the variables (the state of LSTM and SVDF) to 0; resources keep their values, as in TFLite."""
        self._session.variables.clear()

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that returns the tensor's present value, not copied: an input can be written into."""
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
        return SignatureRunner(self._subgraphs[found[0].graph], found[0])

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

    def _find(self, subgraph_index: int) -> Subgraph:
        if not 0 <= subgraph_index < len(self._subgraphs):
            raise InputError(f"subgraph {subgraph_index} does not exist, subgraphs are 0..{len(self._subgraphs) - 1}")
        return self._subgraphs[subgraph_index]
