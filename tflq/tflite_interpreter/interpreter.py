"""`tflq.Interpreter`: the interface of `tf.lite.Interpreter` on this project's engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import BinaryIO, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.converters.tflite import read_model
from tflq.errors import InputError, OptionError
from tflq.files import Content, Source, require_source
from tflq.graph import ABSENT, Array, Model
from tflq.interpreter.execution.control import Session
from tflq.tflite_interpreter.details import OpResolverType, TensorDetails
from tflq.tflite_interpreter.errors import also, flag, integer
from tflq.tflite_interpreter.signature_runner import SignatureRunner
from tflq.tflite_interpreter.subgraph import Subgraph

_VIEWED = "a view of a tensor is held: keep only the function that tensor() returns, or copy what it returned"


class OpDetails(TypedDict):
    """What is known of an operator, under TFLite's names."""

    index: int
    op_name: str
    inputs: NDArray[np.int32]
    outputs: NDArray[np.int32]
    operand_types: list[type[np.generic]]
    result_types: list[type[np.generic]]


class Interpreter:
    """Runs a .tflite model sample by sample, as tf.lite.Interpreter does, or over many samples at once.

    Integers equal those of TFLite's reference kernels bit for bit, and `get_tensor` is right for every tensor,
    intermediate ones too. Errors are TflqErrors, and also what LiteRT raises in the same place: ValueError,
    RuntimeError or TypeError.

    Args:
        model_path: a .tflite file: its path, or the file opened for reading bytes.
        model_content: the bytes of one, instead of a path.
        experimental_delegates: none can be used.
        num_threads: 1 or more; results never depend on it.
        experimental_op_resolver_type: one of OpResolverType; the kernels are always those of BUILTIN_REF.
        experimental_preserve_all_tensors: makes no difference: all tensors are always kept.
        experimental_disable_delegate_clustering: makes no difference, as all that speak of delegates.
        experimental_default_delegate_latest_features: makes no difference.
        experimental_compress_quantization_zero_points: makes no difference but to the property of its name.
        experimental_disable_delegate_node_fusion: makes no difference.
        experimental_force_delegate_node_profiling: makes no difference.

    Raises:
        OptionError: neither or both of model_path and model_content are given, a delegate is, or an argument is none
            of those allowed.
        InputError: the file cannot be read.
        FormatError: it is no .tflite file, or a damaged one.
    """

    @also(ValueError)
    def __init__(
        self,
        model_path: str | bytes | os.PathLike[str] | BinaryIO | None = None,
        model_content: Content | None = None,
        experimental_delegates: Iterable[object] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
    ) -> None:
        _require_resolver(experimental_op_resolver_type)
        _require_threads(num_threads)
        source = _source(model_path, model_content)
        if experimental_delegates:
            raise OptionError("delegates cannot be used: the kernels are this project's own")
        for switch in (
            experimental_preserve_all_tensors,
            experimental_disable_delegate_clustering,
            experimental_default_delegate_latest_features,
            experimental_compress_quantization_zero_points,
            experimental_disable_delegate_node_fusion,
            experimental_force_delegate_node_profiling,
        ):
            flag(switch, "an experimental switch")
        self._compresses = experimental_compress_quantization_zero_points
        self._model = read_model(source)
        self._session = Session()
        numbers = range(len(self._model.graphs))
        self._subgraphs = [Subgraph(self._model, number, self._session, self._compresses) for number in numbers]
        self._subgraph = self._subgraphs[0]

    @property
    def model(self) -> Model:
        """The model as read."""
        return self._model

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The argument of that name, as it was given."""
        return self._compresses

    def subgraph(self, number: int) -> Subgraph:
        """Return one of the model's graphs with its values.

        Raises:
            InputError: there is no such subgraph.
        """
        if not 0 <= number < len(self._subgraphs):
            raise InputError(f"subgraph {number} does not exist, subgraphs are 0..{len(self._subgraphs) - 1}")
        return self._subgraphs[integer(number, "the subgraph's number")]

    @also(RuntimeError)
    def allocate_tensors(self) -> None:
        """Prepare the model for the present input shapes; where it is prepared, values and state stay.

        Raises:
            UnsupportedError: an operator or type without a kernel.
            GraphError: resized inputs that do not fit.
            InputError: a view of a tensor is held.
        """
        self._ensure_safe()
        self._subgraph.allocate()

    def get_input_details(self) -> list[TensorDetails]:
        """Return the details of the inputs, in order."""
        return [self._subgraph.details(t) for t in self._subgraph.graph.inputs]

    def get_output_details(self) -> list[TensorDetails]:
        """Return the details of the outputs, in order."""
        return [self._subgraph.details(t) for t in self._subgraph.graph.outputs]

    @also(ValueError)
    def get_tensor_details(self, subgraph_index: int = 0) -> list[TensorDetails]:
        """Return the details of every tensor of a subgraph.

        Raises:
            InputError: there is no such subgraph.
        """
        subgraph = self.subgraph(subgraph_index)
        return [subgraph.details(t) for t in range(len(subgraph.graph.tensors))]

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return len(self._subgraphs)

    @also(ValueError)
    def resize_tensor_input(self, input_index: int, tensor_size: ArrayLike, strict: bool = False) -> None:
        """Give an input another shape; `allocate_tensors` must follow.

        Args:
            input_index: tensor index of the input.
            tensor_size: the new shape.
            strict: allow only sizes that the model leaves open (-1 in its shape signature) to change.

        Raises:
            InputError: there is no such tensor, it is constant, or `strict` forbids the change; the shape is none; a
                view of a tensor is held.
        """
        self._ensure_safe()
        shape = np.array(tensor_size, np.int32)
        t, is_strict = integer(input_index, "a tensor's index"), flag(strict, "strict")
        if shape.ndim != 1:
            raise InputError(f"shape {tensor_size!r} has {shape.ndim} axes; a list of sizes has one")
        self._subgraph.resize(t, tuple(int(size) for size in shape), is_strict)

    @also(ValueError)
    def set_tensor(self, tensor_index: int, value: ArrayLike) -> None:
        """Copy a value into an input: dtype[*shape].

        Raises:
            InputError: there is no such tensor, it is constant or not allocated, or the value has another type or
                shape.
        """
        t = integer(tensor_index, "a tensor's index")
        self._subgraph.set(t, value)

    @also(RuntimeError)
    def invoke(self) -> None:
        """Run the model once.

        Raises:
            InputError: `allocate_tensors` was not called, or a view of a tensor is held.
            TflqError: what an operator refuses in the values.
        """
        self._ensure_safe()
        self._subgraph.invoke()

    @also(ValueError)
    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """Return a copy of a tensor's value: dtype[*shape]; 0 where nothing was computed yet.

        Raises:
            InputError: there is no such tensor or subgraph, it is not allocated, or its shape is known only when it is
                computed.
        """
        t, number = integer(tensor_index, "a tensor's index"), integer(subgraph_index, "a subgraph's number")
        value: Array = self.subgraph(number).get(t).copy()[()]  # a tensor without axes comes as a scalar
        return value

    def reset_all_variables(self) -> None:
        """Set the variables (the state of LSTM and SVDF) to 0; resources keep their values, as in TFLite."""
        self._session.variables.clear()

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that returns the tensor's present value, not copied, to read and to write in place.

        While an array that it returned lives, nothing runs and nothing is allocated or resized.

        Raises:
            InputError: when it is called, as `get_tensor`.
        """

        @also(ValueError)
        def view() -> Array:
            return self._subgraph.view(integer(tensor_index, "a tensor's index"))

        return view

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return signature key -> {"inputs": names, "outputs": names}."""
        return {s.key: {"inputs": sorted(s.inputs), "outputs": sorted(s.outputs)} for s in self._model.signatures}

    @also(ValueError)
    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a function that takes a signature's inputs by name and returns its outputs by name.

        Args:
            signature_key: may be left out where the model has just one.

        Raises:
            OptionError: there is no such signature.
        """
        signatures = self._model.signatures
        return SignatureRunner(
            self, signatures[0].key if signature_key is None and len(signatures) == 1 else signature_key
        )

    @also(ValueError)
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

    @also(ValueError)
    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> TensorDetails:
        t, number = int(tensor_index), int(subgraph_index)
        return self.subgraph(number).details(integer(t, "a tensor's index"))

    def _get_ops_details(self) -> list[OpDetails]:
        return [self._get_op_details(index) for index in range(len(self._subgraph.graph.nodes))]

    @also(ValueError)
    def _get_op_details(self, op_index: int) -> OpDetails:
        index, graph = integer(op_index, "an operator's index"), self._subgraph.graph
        if not 0 <= index < len(graph.nodes):
            raise InputError(f"operator {index} does not exist, operators are 0..{len(graph.nodes) - 1}")
        node = graph.nodes[index]
        types = [[self._subgraph.details(t)["dtype"] for t in of if t != ABSENT] for of in (node.inputs, node.outputs)]
        return OpDetails(
            index=index,
            op_name=node.custom_code or node.operator.upper(),
            inputs=np.array(node.inputs, np.int32),
            outputs=np.array(node.outputs, np.int32),
            operand_types=types[0],
            result_types=types[1],
        )

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            s.key: {"inputs": dict(sorted(s.inputs.items())), "outputs": dict(sorted(s.outputs.items()))}
            for s in self._model.signatures
        }

    @also(RuntimeError)
    def _native_handle(self) -> int:
        raise OptionError("there is no handle of a C++ interpreter: tflq computes in numpy")

    def _safe_to_run(self) -> bool:
        return not any(subgraph.is_viewed for subgraph in self._subgraphs)

    @also(RuntimeError)
    def _ensure_safe(self) -> None:
        if not self._safe_to_run():
            raise InputError(_VIEWED)


def _source(path: str | bytes | os.PathLike[str] | BinaryIO | None, content: Content | None) -> Source:
    source = path or content
    if not source or (path and content):
        raise OptionError("give either model_path or model_content, not both and not neither")
    with also(TypeError):
        if source is content and isinstance(source, (str, os.PathLike)):
            raise InputError(f"model_content is {source!r}; a path is given as model_path")
        return require_source(os.fsdecode(path) if isinstance(path, bytes) else source)


def _require_resolver(resolver: OpResolverType) -> None:
    if resolver not in frozenset(OpResolverType):  # hashes it, as LiteRT does: a list is a TypeError
        known = ", ".join(f"OpResolverType.{kind.name}" for kind in OpResolverType)
        raise OptionError(f"op resolver {resolver!r} is unknown; allowed are {known}")


def _require_threads(count: int | None) -> None:
    if count is None:
        return
    if not isinstance(count, int):
        raise OptionError(f"num_threads is {type(count).__name__} {count!r}; it must be an int")
    if count < 1:
        raise OptionError(f"num_threads is {count}; 1 or more are needed")
