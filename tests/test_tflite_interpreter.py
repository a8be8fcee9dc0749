"""`tflq.Interpreter` beside the interpreter of ai-edge-litert: the same answers, and clear refusals."""

from __future__ import annotations

import importlib.util
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tflq
from tests.support.data import data_files, data_path
from tests.support.draw import affine
from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_to_bytes, read_model
from tflq.errors import FormatError, InputError, OptionError, TflqError, UnsupportedError
from tflq.graph import Blockwise, DType, Graph, GraphBuilder, Model, Signature, Tensor
from tflq.oracle import Oracle
from tflq.sampling import RandomSamples

FILES = [path for folder in ("models", "corpus", "golden") for path in data_files(folder)]
ANSWERS = ("get_input_details", "get_output_details", "get_tensor_details", "get_signature_list")
INT8 = DType.INT8
Q = affine(INT8, 0.5, 3)

# TFLite may abort the process: a child asks it, and writes down each answer at once.
CHILD = f"""
import pickle, sys
from ai_edge_litert.interpreter import Interpreter, OpResolverType
for path in sys.argv[1:]:
    found = {{}}
    for stage in ("loaded", "allocated"):
        try:
            made = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
                               experimental_preserve_all_tensors=True)
            if stage == "allocated":
                made.allocate_tensors()
            found[stage] = [getattr(made, name)() for name in {ANSWERS}]
        except (ValueError, RuntimeError):
            pass
    pickle.dump((path, found), sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""
Answers = dict[str, dict[str, list[object]]]


def ask_litert(paths: list[str]) -> Answers:
    """Return path -> stage -> what ai-edge-litert answers; nothing for a file that ends the child."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        pytest.skip("ai-edge-litert is not installed: it comes with tflq[litert]")
    answers: Answers = {}
    while paths:
        done = subprocess.run([sys.executable, "-c", CHILD, *paths], capture_output=True, check=False)
        stream, found = io.BytesIO(done.stdout), []
        while stream.tell() < len(done.stdout):
            found.append(pickle.load(stream))
        answers.update(found)
        paths = paths[len(found) + (done.returncode != 0) :]
    return answers


@pytest.fixture(scope="module")
def theirs() -> Answers:
    return ask_litert([str(path) for path in FILES])


def assert_equal(ours: object, theirs: object, where: str) -> None:
    """Compare nested answers: types, order of keys, dtypes and bits."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict) and isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in ours:
            assert_equal(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_equal(one, other, f"{where}[{i}]")
    elif isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        same = ours.tolist() == theirs.tolist() if ours.dtype == object else ours.tobytes() == theirs.tobytes()
        assert same, where
    else:
        assert ours == theirs, where


def assert_same_answers(ours: tflq.Interpreter, theirs: list[object]) -> None:
    for name, other in zip(ANSWERS, theirs, strict=True):
        mine = getattr(ours, name)()
        if name == "get_tensor_details":  # behind the model's own tensors TFLite has scratch tensors of its kernels
            other = [details for details in other if details["index"] < len(mine)]
        assert_equal(mine, other, name)


@pytest.mark.parametrize("path", FILES or [None], ids=[path.name for path in FILES] or ["no data"])
def test_details_are_those_of_tflite(path, theirs: Answers) -> None:
    path = path or data_path("models")
    found = theirs.get(str(path), {})
    if not found:
        pytest.skip("TFLite's reference kernels do not load the model")
    assert_same_answers(tflq.Interpreter(path), found["loaded"])
    if "allocated" in found:
        ours = tflq.Interpreter(str(path))
        ours.allocate_tensors()
        assert_same_answers(ours, found["allocated"])


def test_details_of_blocks_sparse_constants_and_strings(tmp_path) -> None:
    b = GraphBuilder()
    x = b.input("x", (2,), DType.STRING)
    s = b.constant("s", np.array([[0.5], [2]], np.float16))
    b.constant("w", np.ones((2, 32), np.int8), Blockwise(s, -1, 32), DType.INT4)
    path = tmp_path / "details.tflite"
    path.write_bytes(model_to_bytes(b.build([b.add("reshape", [x], (2,), DType.STRING, new_shape=(2,))])))
    assert_same_answers(tflq.Interpreter(path), ask_litert([str(path)])[str(path)]["loaded"])


def test_a_run_equals_tflite_in_every_tensor(oracle: Oracle) -> None:
    path = data_path("models", "kws_ref_model.tflite")
    ours = tflq.Interpreter(model_content=path.read_bytes())
    ours.allocate_tensors()
    graph = read_model(path).main
    (sample,) = RandomSamples(graph, 1).take(0, 1)
    ours.set_tensor(ours.get_input_details()[0]["index"], sample[0])
    ours.invoke()
    judged = oracle.run(path.read_bytes(), [sample])
    for t, array in judged.tensors.items():
        assert_same_bits(ours.get_tensor(t), array[0], f"tensor {t}")


def test_many_samples_at_once() -> None:
    ours = scaled()
    ours.allocate_tensors()
    samples = np.random.default_rng(1).integers(-128, 128, (5, 2, 3), np.int8)
    together = ours.run_samples([samples])
    assert together.keys() == {1}
    for s, sample in enumerate(samples):
        ours.set_tensor(0, sample)
        ours.invoke()
        assert np.array_equal(ours.get_tensor(1), together[1][s])
    assert ours.run_samples([samples], [0])[0].shape == (5, 2, 3)


def graph_of(scale: float = 0.25, name: str = "") -> Graph:
    b = GraphBuilder(name)
    x = b.input("x", (2, 3), INT8, Q)
    graph = b.build([b.add("relu", [x], (2, 3), INT8, affine(INT8, scale))])
    graph.tensors[0] = replace(graph.tensors[0], shape_signature=(-1, 3))
    return graph


def scaled() -> tflq.Interpreter:
    return tflq.Interpreter(model_content=model_to_bytes(graph_of()))


def test_resizing(oracle: Oracle) -> None:
    ours = scaled()
    ours.allocate_tensors()
    ours.resize_tensor_input(0, [4, 3], strict=True)
    assert ours.get_input_details()[0]["shape"].tolist() == [4, 3]
    assert ours.get_input_details()[0]["shape_signature"].tolist() == [-1, 3]
    with pytest.raises(InputError, match="not allocated"):
        ours.invoke()
    ours.allocate_tensors()
    assert ours.get_output_details()[0]["shape"].tolist() == [4, 3]
    sample = np.arange(12, dtype=np.int8).reshape(4, 3)
    ours.set_tensor(0, sample)
    ours.invoke()
    judged = oracle.run(model_to_bytes(graph_of()), [sample[None]], resize=True)
    assert_same_bits(ours.get_tensor(1), judged.outputs[0][0], "output")
    ours.resize_tensor_input(0, np.array([2, 5]))
    ours.allocate_tensors()
    assert ours.get_output_details()[0]["shape"].tolist() == [2, 5]


def test_inputs_can_be_written_in_place_and_outputs_are_copies() -> None:
    ours = scaled()
    ours.allocate_tensors()
    given = ours.tensor(0)
    given().fill(9)
    ours.invoke()
    first = ours.get_tensor(1)
    assert first.tolist() == [[12] * 3] * 2
    first[:] = 0
    assert ours.get_tensor(1).tolist() == [[12] * 3] * 2
    value = np.full((2, 3), 5, np.int8)
    ours.set_tensor(0, value)
    value[:] = 0
    assert ours.get_tensor(0).tolist() == [[5] * 3] * 2


def test_strings_of_every_kind_become_bytes() -> None:
    b = GraphBuilder()
    x = b.input("x", (2,), DType.STRING)
    ours = tflq.Interpreter(
        model_content=model_to_bytes(b.build([b.add("reshape", [x], (2, 1), DType.STRING, new_shape=(2, 1))]))
    )
    ours.allocate_tensors()
    for value in (np.array([b"a", "ü".encode()]), np.array(["a", "ü"]), np.array(["a", "ü".encode()], object)):
        ours.set_tensor(0, value)
        ours.invoke()
        assert ours.get_tensor(1).tolist() == [[b"a"], ["ü".encode()]]


def two_signatures() -> tflq.Interpreter:
    model = Model(
        [graph_of(0.25, "one"), graph_of(0.125, "two")],
        [Signature("quarter", 0, {"x": 0}, {"y": 1}), Signature("eighth", 1, {"x": 0}, {"y": 1, "same": 0})],
    )
    return tflq.Interpreter(model_content=model_to_bytes(model))


def test_signatures() -> None:
    ours = two_signatures()
    assert ours.num_subgraphs() == 2
    assert ours.get_signature_list() == {
        "quarter": {"inputs": ["x"], "outputs": ["y"]},
        "eighth": {"inputs": ["x"], "outputs": ["same", "y"]},
    }
    quarter, eighth = (ours.get_signature_runner(key) for key in ("quarter", "eighth"))
    x = np.full((2, 3), 5, np.int8)
    assert quarter(x=x)["y"].tolist() == [[4] * 3] * 2
    assert eighth(x=x)["y"].tolist() == [[8] * 3] * 2
    assert list(eighth(x=x)) == ["same", "y"]
    assert quarter(x=x[:1])["y"].shape == (1, 3)
    assert quarter(x=x)["y"].shape == (2, 3)
    assert list(eighth.get_output_details()) == ["same", "y"]
    assert eighth.get_input_details()["x"]["index"] == 0
    assert np.array_equal(ours.get_tensor(1), quarter(x=x)["y"])
    assert np.array_equal(ours.get_tensor(1, subgraph_index=1), eighth(x=x)["y"])
    assert len(ours.get_tensor_details(subgraph_index=1)) == 2


def test_signatures_of_the_corpus(oracle: Oracle) -> None:
    path = data_path("corpus", "ai_edge_quantizer", "two_signatures.tflite")
    model, ours = read_model(path), tflq.Interpreter(path)
    assert len(model.signatures) == 2
    for signature in model.signatures:
        graph = model.graphs[signature.graph]
        samples = dict(zip(graph.inputs, RandomSamples(graph, 1).take(0, 1), strict=True))
        given = {name: samples[t] for name, t in signature.inputs.items()}
        judged = oracle.run(path.read_bytes(), given, signature=signature.key)
        found = ours.get_signature_runner(signature.key)(**{name: array[0] for name, array in given.items()})
        for name, t in signature.outputs.items():
            assert_same_bits(found[name], judged.tensors[t][0], name)


def test_state_goes_on_from_one_invocation_to_the_next_and_is_shared() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 1, 1), DType.FLOAT32)
    one, zero = np.ones((1, 1), np.float32), np.zeros(1, np.float32)
    operands = [b.constant(name, value) for name, value in (("w", one), ("r", one), ("b", zero))]
    state = b.tensor("state", (1, 1), DType.FLOAT32)
    y = b.tensor("y", (1, 1, 1), DType.FLOAT32)
    b.node("unidirectional_sequence_rnn", [x, *operands, state], [y], time_major=False)
    b._graph.tensors[state] = Tensor("state", (1, 1), DType.FLOAT32, is_variable=True)
    ours = tflq.Interpreter(model_content=model_to_bytes(b.build([y])))
    ours.allocate_tensors()
    totals = []
    for _ in range(3):
        ours.set_tensor(x, np.ones((1, 1, 1), np.float32))
        ours.invoke()
        totals.append(float(ours.get_tensor(y)[0, 0, 0]))
    ours.reset_all_variables()
    ours.invoke()
    assert [*totals, float(ours.get_tensor(y)[0, 0, 0])] == [1.0, 2.0, 3.0, 1.0]


Refusal = Callable[[tflq.Interpreter], object]


@pytest.mark.parametrize(
    ("refused", "error", "message"),
    [
        (
            lambda i: i.set_tensor(0, np.zeros((2, 3), np.uint8)),
            InputError,
            r"'x': found uint8\[2, 3\], the model takes",
        ),
        (lambda i: i.set_tensor(0, np.zeros((3, 2), np.int8)), InputError, r"'x': found int8\[3, 2\], .* int8\[2, 3\]"),
        (lambda i: i.set_tensor(0, [[1, 2, 3]] * 2), InputError, r"'x': found int64\[2, 3\]"),
        (lambda i: i.get_tensor(2), InputError, r"tensor 2 does not exist, tensors are 0\.\.1"),
        (lambda i: i.get_tensor(-1), InputError, "tensor -1 does not exist"),
        (lambda i: i.get_tensor(0, 1), InputError, r"subgraph 1 does not exist, subgraphs are 0\.\.0"),
        (lambda i: i.get_tensor_details(5), InputError, "subgraph 5 does not exist"),
        (lambda i: i.resize_tensor_input(0, [-1, 3]), InputError, r"'x': shape \(-1, 3\); sizes must be 0 or more"),
        (
            lambda i: i.resize_tensor_input(0, [2, 4], strict=True),
            InputError,
            r"\(2, 4\) is not allowed by .* \(-1, 3\)",
        ),
        (lambda i: i.resize_tensor_input(0, [2], strict=True), InputError, r"\(2,\) is not allowed"),
        (lambda i: i.get_signature_runner("main"), OptionError, "signature 'main' is not one of .* signatures: none"),
        (lambda i: i.get_signature_runner(), OptionError, "signature None is not one of"),
        (lambda i: i.run_samples([]), InputError, "0 input arrays were given"),
    ],
)
def test_wrong_use_is_refused(refused: Refusal, error: type[TflqError], message: str) -> None:
    ours = scaled()
    ours.allocate_tensors()
    with pytest.raises(error, match=message):
        refused(ours)


@pytest.mark.parametrize(
    "use",
    [
        lambda i: i.invoke(),
        lambda i: i.set_tensor(0, np.zeros((2, 3), np.int8)),
        lambda i: i.run_samples([np.zeros((1, 2, 3), np.int8)]),
    ],
)
def test_tensors_must_be_allocated(use: Refusal) -> None:
    with pytest.raises(InputError, match="the tensors are not allocated: call allocate_tensors"):
        use(scaled())


def test_signature_runners_refuse_wrong_names_and_values() -> None:
    runner = two_signatures().get_signature_runner("quarter")
    for names in ({}, {"y": 1}, {"x": 1, "y": 2}):
        with pytest.raises(InputError, match=r"signature 'quarter' takes \['x'\], found "):
            runner(**names)
    with pytest.raises(InputError, match="found float64"):
        runner(x=np.zeros((2, 3)))
    with pytest.raises(OptionError, match="signature None is not one of the model's signatures: quarter, eighth"):
        two_signatures().get_signature_runner()


def test_wrong_models_are_refused(tmp_path) -> None:
    with pytest.raises(OptionError, match="either model_path or model_content"):
        tflq.Interpreter()
    with pytest.raises(OptionError, match="either model_path or model_content"):
        tflq.Interpreter("a", b"b")
    with pytest.raises(OptionError, match="delegates cannot be used"):
        tflq.Interpreter("a", experimental_delegates=[object()])
    with pytest.raises(InputError, match=r"no\.tflite: cannot be read"):
        tflq.Interpreter(tmp_path / "no.tflite")
    with pytest.raises(OptionError, match="either model_path or model_content"):
        tflq.Interpreter(model_content=b"")
    with pytest.raises(FormatError, match=r"^model: "):
        tflq.Interpreter(model_content=b"no model at all")


def test_a_missing_kernel_is_told_on_allocation() -> None:
    graph = graph_of()
    graph.nodes[0] = replace(graph.nodes[0], operator="custom", custom_code="Mine")
    ours = tflq.Interpreter(model_content=model_to_bytes(graph))
    with pytest.raises(UnsupportedError, match=r"no kernel for custom Mine in arithmetic 'tflite' \(operator 0\)"):
        ours.allocate_tensors()
