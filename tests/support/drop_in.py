"""Calls of the whole interface of LiteRT's interpreter, good ones and bad ones, for any module that has it.

Run as a program it makes them in ai-edge-litert and writes what came out, so that a crash ends a child alone. Left out
is what ends LiteRT's process: details of a subgraph that does not exist, and strings read before anything wrote them.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from tests.support.draw import affine
from tflq.converters.tflite import model_to_bytes
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model, Signature, Tensor

Outcome = tuple[str, object]
"""("value", what came back), or ("error", names of the built-in errors that it is)."""

Call = Callable[[ModuleType], object]
INT8 = DType.INT8
ZEROS = np.zeros((2, 3), np.int8)
SWITCHES = (
    "experimental_preserve_all_tensors",
    "experimental_disable_delegate_clustering",
    "experimental_default_delegate_latest_features",
    "experimental_compress_quantization_zero_points",
    "experimental_disable_delegate_node_fusion",
    "experimental_force_delegate_node_profiling",
)


def relu(scale: float = 0.25, name: str = "") -> Graph:
    """int8[-1, 3] -> RELU."""
    b = GraphBuilder(name)
    x = b.input("x", (2, 3), INT8, affine(INT8, 0.5, 3))
    graph = b.build([b.add("relu", [x], (2, 3), INT8, affine(INT8, scale))])
    graph.tensors[0] = replace(graph.tensors[0], shape_signature=(-1, 3))
    return graph


def two_signatures() -> Model:
    """Two graphs, a signature each."""
    signatures = [Signature("quarter", 0, {"x": 0}, {"y": 1}), Signature("eighth", 1, {"x": 0}, {"y": 1, "same": 0})]
    return Model([relu(0.25, "one"), relu(0.125, "two")], signatures)


def recurrent() -> Graph:
    """float32[1, 1, 1] -> RNN that adds up; tensor 4 is its state."""
    b = GraphBuilder()
    x = b.input("x", (1, 1, 1), DType.FLOAT32)
    one, zero = np.ones((1, 1), np.float32), np.zeros(1, np.float32)
    operands = [b.constant(name, value) for name, value in (("w", one), ("r", one), ("b", zero))]
    state, y = b.tensor("state", (1, 1), DType.FLOAT32), b.tensor("y", (1, 1, 1), DType.FLOAT32)
    b.node("unidirectional_sequence_rnn", [x, *operands, state], [y], time_major=False)
    b._graph.tensors[state] = Tensor("state", (1, 1), DType.FLOAT32, is_variable=True)
    return b.build([y])


def reshaped() -> Graph:
    """int8[6] and a shape that is computed -> RESHAPE, tensor 2, and RELU, tensor 3: shapes known at run time."""
    b = GraphBuilder()
    q = affine(INT8, 0.5, 3)
    x, s = b.input("x", (6,), INT8, q), b.input("s", (2,), DType.INT32)
    return b.build([b.add("relu", [b.add("reshape", [x, s], (2, 3), INT8, q)], (2, 3), INT8, q)])


def texts() -> Graph:
    """string[2] -> RESHAPE."""
    b = GraphBuilder()
    x = b.input("x", (2,), DType.STRING)
    return b.build([b.add("reshape", [x], (2, 1), DType.STRING, new_shape=(2, 1))])


def channels(*zero_points: int) -> Graph:
    """Weights with a scale for each channel, beside an operator."""
    b = GraphBuilder()
    x = b.input("x", (3,), INT8, affine(INT8, 0.5, 3))
    scales = np.array([0.5, 0.25, 0.125], np.float32)[: len(zero_points)]
    b.constant("w", np.ones((len(zero_points), 2), np.int8), Affine(scales, np.array(zero_points, np.int64), 0))
    return b.build([b.add("relu", [x], (3,), INT8, affine(INT8, 0.5, 3))])


def custom() -> Graph:
    """A custom operator that nobody has."""
    graph = relu()
    graph.nodes[0] = replace(graph.nodes[0], operator="custom", custom_code="Mine")
    return graph


def calls(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield names and calls; `folder` holds what `write_models` wrote."""
    yield from _constructions(folder)
    for allocate in (True, False):
        for name, act in _on_relu():
            yield f"{name}, {'allocated' if allocate else 'not allocated'}", _with(relu(), act, allocate)
    yield from _views()
    yield from _states()
    yield from _shapes_at_run_time()
    yield from _other_models()
    yield from _signatures()


def write_models(folder: Path) -> None:
    """Write what the constructions read."""
    (folder / "relu.tflite").write_bytes(model_to_bytes(relu()))


def make(m: ModuleType, model: Graph | Model, **options: object) -> object:
    """Make an interpreter with the kernels that both have."""
    given = {"experimental_op_resolver_type": m.OpResolverType.BUILTIN_REF, "experimental_preserve_all_tensors": True}
    return m.Interpreter(model_content=model_to_bytes(model), **(given | options))


def _with(model: Graph | Model, act: Callable[..., object], allocate: bool = True, **options: object) -> Call:
    def call(m: ModuleType) -> object:
        made = make(m, model, **options)
        if allocate:
            made.allocate_tensors()
        return act(made)

    return call


def _constructions(folder: Path) -> Iterator[tuple[str, Call]]:
    content, path = model_to_bytes(relu()), folder / "relu.tflite"
    for name, arguments in {
        "nothing": {}, "both": {"model_path": "a", "model_content": b"b"}, "no bytes": {"model_content": b""},
        "no name": {"model_path": ""}, "garbage": {"model_content": b"no model" * 50},
        "cut": {"model_content": content[: len(content) // 2]}, "missing": {"model_path": str(folder / "no.tflite")},
        "folder": {"model_path": str(folder)}, "number as path": {"model_path": 5}, "text": {"model_path": str(path)},
        "bytes as path": {"model_path": str(path).encode()}, "pathlib": {"model_path": path},
        "text as content": {"model_content": "abc"}, "number as content": {"model_content": 5},
        "list as content": {"model_content": [5]}, "unknown": {"model_content": content, "threads": 1},
        "threads of a missing file": {"model_path": "no.tflite", "num_threads": 0},
        "no delegates": {"model_content": content, "experimental_delegates": []},
    }.items():  # fmt: skip
        yield f"Interpreter: {name}", lambda m, a=arguments: m.Interpreter(**a).num_subgraphs()
    for count in (0, -1, 1, 4, True, False, 1.0, "2", None, np.int32(2), 10**6):
        yield f"num_threads {count!r}", _with(relu(), lambda i: i.num_subgraphs(), num_threads=count)
    for kind in ("AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        yield (
            f"resolver {kind}",
            lambda m, k=kind: (
                m.OpResolverType[k].value,
                m.Interpreter(model_content=content, experimental_op_resolver_type=m.OpResolverType[k]).num_subgraphs(),
            ),
        )
    for kind in (0, 2, None, "BUILTIN_REF", []):
        yield f"resolver {kind!r}", _with(relu(), lambda i: i.num_subgraphs(), experimental_op_resolver_type=kind)
    for switch in SWITCHES:
        for value in (True, False, 0, 1, None, "x", 2.5, [], np.True_):
            yield f"{switch}={value!r}", _with(relu(), lambda i: i.num_subgraphs(), **{switch: value})


def _on_relu() -> Iterator[tuple[str, Callable[..., object]]]:
    for name in ("allocate_tensors", "get_input_details", "get_output_details", "get_tensor_details", "invoke",
                 "num_subgraphs", "reset_all_variables", "get_signature_list", "get_signature_runner",
                 "_get_full_signature_list", "_get_ops_details", "_safe_to_run", "_ensure_safe"):  # fmt: skip
        yield name, lambda i, n=name: getattr(i, n)()
    indices = (0, 1, 2, -1, 100, "a", None, 0.0, 1.5, True, np.int64(0), np.int32(1), np.float32(1), 2**40)
    for t in indices:
        yield f"get_tensor({t!r})", lambda i, t=t: i.get_tensor(t).shape
        yield f"tensor({t!r})()", lambda i, t=t: i.tensor(t)().shape
        yield f"tensor({t!r})", lambda i, t=t: callable(i.tensor(t))
        yield f"set_tensor({t!r})", lambda i, t=t: (i.set_tensor(t, ZEROS + 7), i.get_tensor(t), i.invoke())
        yield f"resize_tensor_input({t!r})", lambda i, t=t: i.resize_tensor_input(t, [4, 3])
        yield f"resize_tensor_input({t!r}), allocate", lambda i, t=t: (
            i.resize_tensor_input(t, [4, 3]), i.allocate_tensors(), _shapes(i))  # fmt: skip
        yield f"_get_tensor_details({t!r})", lambda i, t=t: i._get_tensor_details(t, 0)
        yield f"_get_op_details({t!r})", lambda i, t=t: i._get_op_details(t)
        yield f"get_tensor_details({t!r})", lambda i, t=t: len(i.get_tensor_details(t))
        yield f"get_tensor(0, {t!r})", lambda i, t=t: i.get_tensor(0, t).shape
        yield f"get_signature_runner({t!r})", lambda i, t=t: i.get_signature_runner(t)
    values = {"uint8": ZEROS.astype(np.uint8), "float": ZEROS.astype(np.float32), "transposed": ZEROS.T,
              "flat": ZEROS.reshape(-1), "large": np.zeros((3, 3), np.int8), "list": [[0] * 3] * 2, "number": 5,
              "None": None, "text": "abc", "0 axes": np.int8(5), "Fortran": np.asfortranarray(ZEROS + 1),
              "strided": np.ones((4, 6), np.int8)[::2, ::2], "batch": ZEROS[None], "objects": ZEROS.astype(object),
              "bool": ZEROS.astype(bool), "no rows": np.zeros((0, 3), np.int8), "masked": np.ma.array(ZEROS),
              "int64": ZEROS.astype(np.int64), "strings": ZEROS.astype("S"), "ragged": [[1], [1, 2]],
              "bytes": bytes(6), "memoryview": memoryview(ZEROS)}  # fmt: skip
    for name, value in values.items():
        yield f"set_tensor(0, {name})", lambda i, v=value: (i.set_tensor(0, v), i.get_tensor(0))
    shapes = {"batch": [4, 3], "negative": [-1, 3], "rank": [2], "no axes": [], "none": [0, 3], "fraction": [2.5, 3],
              "text": "ab", "None": None, "number": 6, "nested": [[2, 3]], "int64": np.array([4, 3]),
              "33 bits": [2**31, 3], "tuple": (4, 3), "floats": np.array([4.0, 3.0]), "same": [2, 3],
              "second": [2, 4]}  # fmt: skip
    for name, shape in shapes.items():
        yield f"resize to {name}", lambda i, s=shape: i.resize_tensor_input(0, s)
        yield f"resize to {name}, strict", lambda i, s=shape: i.resize_tensor_input(0, s, strict=True)
        yield (
            f"resize to {name}, allocate",
            lambda i, s=shape: (
                i.resize_tensor_input(0, s),
                i.allocate_tensors(),
                _shapes(i),
                i.invoke(),
                i.get_tensor(1).shape,
                type(i.get_tensor(1)),
            ),
        )
        yield f"resize to {name}, invoke", lambda i, s=shape: (i.resize_tensor_input(0, s), i.invoke())
        yield f"resize to {name}, read", lambda i, s=shape: (i.resize_tensor_input(0, s), i.get_tensor(0).shape)
        yield f"resize to {name}, set", lambda i, s=shape: (i.resize_tensor_input(0, s), i.set_tensor(0, ZEROS))
    for strict in ("x", 1, None, []):
        yield f"resize strict={strict!r}", lambda i, s=strict: i.resize_tensor_input(0, [2, 4], s)


def _shapes(interpreter: object) -> list[object]:
    return [details["shape"] for details in interpreter.get_tensor_details()]


def _views() -> Iterator[tuple[str, Call]]:
    def held(then: Callable[..., object], part: object = slice(None)) -> Call:
        def act(i: object) -> object:
            view = i.tensor(0)()[part]
            return then(i), view.shape

        return _with(relu(), act)

    for name in ("invoke", "allocate_tensors", "_ensure_safe", "_safe_to_run", "get_input_details"):
        yield f"{name} while a view is held", held(lambda i, n=name: getattr(i, n)())
        yield f"{name} while a row of a view is held", held(lambda i, n=name: getattr(i, n)(), 0)
    yield "resize while a view is held", held(lambda i: i.resize_tensor_input(0, [4, 3]))
    yield "set while a view is held", held(lambda i: (i.set_tensor(0, ZEROS + 3), i.get_tensor(0)))
    yield (
        "invoke when no view is held any more",
        _with(relu(), lambda i: (i.tensor(0)().fill(9), i.invoke(), i.tensor(1)().copy(), i.invoke(), i.get_tensor(1))),
    )
    yield (
        "views are written in place",
        _with(relu(), lambda i: (i.tensor(0)().fill(9), i.tensor(1)().fill(4), i.get_tensor(0), i.get_tensor(1))),
    )
    yield (
        "copies can be written",
        _with(relu(), lambda i: (i.get_tensor(0).fill(9), i.set_tensor(0, ZEROS), i.get_tensor(0))),
    )
    yield (
        "a second allocation keeps values",
        _with(relu(), lambda i: (i.set_tensor(0, ZEROS + 3), i.allocate_tensors(), i.get_tensor(0))),
    )


def _states() -> Iterator[tuple[str, Call]]:
    def steps(i: object, *values: float) -> list[float]:
        found = []
        for value in values:
            i.set_tensor(0, np.full((1, 1, 1), value, np.float32))
            i.invoke()
            found.append(float(i.get_tensor(5)[0, 0, 0]))
        return found

    def act(i: object) -> object:
        return (
            i.get_tensor(4),
            steps(i, 1, 1),
            i.allocate_tensors(),
            i.get_tensor(4),
            steps(i, 1),
            i.set_tensor(4, np.full((1, 1), 10, np.float32)),
            i.get_tensor(4),
            steps(i, 1),
            i.reset_all_variables(),
            i.get_tensor(4),
            i.get_tensor(5),
            steps(i, 2),
        )

    yield "state", _with(recurrent(), act)
    yield "constants", _with(recurrent(), lambda i: (i.get_tensor(1), i.get_tensor(3)), allocate=False)
    yield "a constant has a fixed shape", _with(recurrent(), lambda i: i.resize_tensor_input(1, [2, 2]))


def _shapes_at_run_time() -> Iterator[tuple[str, Call]]:
    def run(i: object) -> object:
        i.set_tensor(0, np.arange(6, dtype=np.int8))
        i.set_tensor(1, np.array([3, 2], np.int32))
        i.invoke()
        return [i.get_tensor(t) for t in range(4)], _shapes(i)

    for name, act in {
        "shapes at run time": run,
        "shapes at run time, before": lambda i: i.get_tensor(3),
        "shapes at run time, kept": lambda i: (run(i), i.allocate_tensors(), i.get_tensor(1)),
        "values that an operator refuses": lambda i: (i.set_tensor(1, np.array([5, 2], np.int32)), i.invoke()),
    }.items():
        yield name, _with(reshaped(), act)


def _other_models() -> Iterator[tuple[str, Call]]:
    for name, value in {
        "bytes": np.array([b"a", b"bc"]), "text": np.array(["a", "ü"]), "objects": np.array(["a", b"b"], object),
        "list": ["a", "b"], "numbers": np.array([1, 2], object), "None": np.array([None, "a"], object),
        "int8": np.zeros(2, np.int8), "one": np.array(["a"]), "row": np.array([["a", "b"]]),
    }.items():  # fmt: skip
        yield (
            f"strings: {name}",
            _with(texts(), lambda i, v=value: (i.set_tensor(0, v), i.get_tensor(0), i.invoke(), i.get_tensor(1))),
        )

    def details(i: object) -> object:
        return i.get_tensor_details(), i.experimental_compress_quantization_zero_points

    for points in ((0, 0, 0), (5, 5, 5), (0, 1, 0), (4,)):
        for compress in (True, False):
            options = {"experimental_compress_quantization_zero_points": compress}
            yield f"zero points {points}, {compress}", _with(channels(*points), details, **options)
    yield "custom operator", _with(custom(), lambda i: i._get_ops_details(), allocate=False)
    yield "custom operator, allocated", _with(custom(), lambda i: None)
    yield "custom operator, run", _with(custom(), lambda i: i.invoke(), allocate=False)


def _signatures() -> Iterator[tuple[str, Call]]:
    for name in ("get_signature_list", "_get_full_signature_list", "num_subgraphs", "_get_ops_details"):
        yield f"two signatures: {name}", _with(two_signatures(), lambda i, n=name: getattr(i, n)())
    yield "two signatures: details", _with(two_signatures(), lambda i: i.get_tensor_details(1))
    yield "two signatures: second", _with(two_signatures(), lambda i: i.get_tensor(0, 1))
    for key in ("quarter", "eighth", None, "none", 5, ""):
        yield f"runner of {key!r}", _with(two_signatures(), lambda i, k=key: i.get_signature_runner(k)(x=ZEROS + 5))
    for name, inputs in {
        "none": {}, "another": {"y": ZEROS}, "two": {"x": ZEROS, "y": ZEROS}, "float": {"x": ZEROS.astype(float)},
        "list": {"x": [[1]]}, "row": {"x": ZEROS[0]}, "batch": {"x": np.ones((7, 3), np.int8)},
    }.items():  # fmt: skip
        yield (
            f"runner: {name}",
            _with(two_signatures(), lambda i, a=inputs: i.get_signature_runner("quarter")(**a), allocate=False),
        )
    yield (
        "runner: details",
        _with(
            two_signatures(),
            lambda i: [
                f() for r in [i.get_signature_runner("eighth")] for f in (r.get_input_details, r.get_output_details)
            ],
        ),
    )
    for given in ((), (None, "a")):
        yield f"SignatureRunner{given}", lambda m, g=given: m.SignatureRunner(*g)
    yield "SignatureRunner without a key", lambda m: m.SignatureRunner(make(m, two_signatures()))
    yield "SignatureRunner", lambda m: m.SignatureRunner(make(m, two_signatures()), "quarter")(x=ZEROS + 5)


def outcomes(m: ModuleType, folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Make each call in a module and yield what came out."""
    warnings.simplefilter("ignore")
    for name, call in calls(folder):
        try:
            found = ("value", call(m))
        except Exception as error:
            found = ("error", [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"])
        try:
            pickle.dumps(found)
        except Exception:
            found = (found[0], type(found[1]).__name__)
        yield name, found


if __name__ == "__main__":
    import ai_edge_litert.interpreter as litert

    for pair in outcomes(litert, Path(sys.argv[1])):
        pickle.dump(pair, sys.stdout.buffer)
        sys.stdout.buffer.flush()
