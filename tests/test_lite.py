"""`tflq.lite` in the place of `ai_edge_litert.interpreter`: the same signatures, answers and kinds of errors."""

from __future__ import annotations

import importlib.util
import inspect
import io
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tflq.lite
from tests.support import drop_in
from tests.support.drop_in import Outcome, relu, reshaped, two_signatures
from tests.test_tflite_interpreter import assert_equal
from tflq.converters.tflite import model_to_bytes
from tflq.errors import InputError, TflqError

REGISTERS_KERNELS_IN_C = {"InterpreterWithCustomOps"}


@pytest.fixture(scope="module")
def litert() -> ModuleType:
    if importlib.util.find_spec("ai_edge_litert") is None:
        pytest.skip("ai-edge-litert is not installed: it comes with tflq[litert]")
    return importlib.import_module("ai_edge_litert.interpreter")


@pytest.fixture(scope="module")
def theirs(litert: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("theirs")
    drop_in.write_models(folder)
    command = [sys.executable, "-m", "tests.support.drop_in", folder]
    done = subprocess.run(command, capture_output=True, check=False, cwd=Path(__file__).parents[1])
    stream, found = io.BytesIO(done.stdout), {}
    while stream.tell() < len(done.stdout):
        name, outcome = pickle.load(stream)
        found[name] = outcome
    assert done.returncode == 0, f"behind {list(found)[-1:]}: {done.stderr.decode()[-500:]}"
    return found


def test_every_call_ends_as_in_litert(theirs: dict[str, Outcome], tmp_path: Path) -> None:
    drop_in.write_models(tmp_path)
    ours = dict(drop_in.outcomes(tflq.lite, tmp_path))
    assert list(ours) == list(theirs)
    assert len(ours) > 600
    for name, (kind, value) in theirs.items():
        assert ours[name][0] == kind, f"{name}: {ours[name]} where LiteRT has {value}"
        if kind == "error":
            assert value[0] in ours[name][1], f"{name}: {ours[name][1]} where LiteRT raises {value[0]}"
        else:
            assert_equal(ours[name][1], value, name)


def test_what_can_be_imported_is_what_litert_has(litert: ModuleType) -> None:
    own = {name for name, value in vars(litert).items() if getattr(value, "__module__", "") == litert.__name__}
    wanted = {name for name in own if not name.startswith("_")} - REGISTERS_KERNELS_IN_C
    assert wanted == set(tflq.lite.__all__) - {"experimental"}
    for name in wanted:
        assert inspect.isclass(getattr(tflq.lite, name)) == inspect.isclass(getattr(litert, name)), name
    kinds = [{kind.name: kind.value for kind in m.OpResolverType} for m in (tflq.lite, litert)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", ["Interpreter", "SignatureRunner"])
def test_methods_take_the_same_arguments(litert: ModuleType, name: str) -> None:
    ours, theirs = getattr(tflq.lite, name), getattr(litert, name)
    methods = [key for key in dir(theirs) if key not in dir(object) or key in ("__init__",)]
    for method in set(methods) - {"__del__", "__module__", "__dict__", "__weakref__"}:
        one, other = getattr(ours, method), getattr(theirs, method)
        assert callable(one) == callable(other), method
        if callable(other):
            assert _parameters(one) == _parameters(other), method


def test_functions_take_the_same_arguments(litert: ModuleType) -> None:
    assert _parameters(tflq.lite.load_delegate) == _parameters(litert.load_delegate)
    assert _parameters(tflq.lite.Delegate) == _parameters(litert.Delegate)


def _parameters(function: object) -> list[tuple[str, object, str]]:
    """Names, kinds and defaults; a resolver counts by its name."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, getattr(p.default, "name", repr(p.default))) for p in found if p.kind is not p.VAR_KEYWORD]


def test_a_model_comes_as_path_bytes_or_file(tmp_path: Path) -> None:
    content, path = model_to_bytes(relu()), tmp_path / "relu.tflite"
    path.write_bytes(content)
    for given in (bytearray(content), memoryview(content), io.BytesIO(content)):
        assert tflq.lite.Interpreter(model_content=given).get_input_details()[0]["name"] == "x"
    with path.open("rb") as file:
        assert tflq.lite.Interpreter(file).model.source == str(path)
        with pytest.raises(InputError, match=r"relu\.tflite: the opened file is at its end"):
            tflq.lite.Interpreter(file)
    with path.open(encoding="latin-1") as file, pytest.raises(InputError, match="read\\(\\) returned str; open it for"):
        tflq.lite.Interpreter(file)
    with pytest.raises(InputError, match="source is int 5; allowed is a path, bytes, or a file opened"):
        tflq.lite.Interpreter(5)


def test_outputs_are_zero_before_the_first_run() -> None:
    ours = drop_in.make(tflq.lite, relu())
    ours.allocate_tensors()
    for t in (0, 1):
        assert ours.get_tensor(t).tolist() == [[0] * 3] * 2
        assert ours.tensor(t)().tolist() == [[0] * 3] * 2
    ours = drop_in.make(tflq.lite, reshaped())
    ours.allocate_tensors()
    with pytest.raises(InputError, match="tensor 3 'relu_1' has no value yet: call invoke"):
        ours.get_tensor(3)


def test_constants_cannot_be_set() -> None:
    """LiteRT writes into the bytes that the caller gave."""
    ours = drop_in.make(tflq.lite, drop_in.recurrent())
    ours.allocate_tensors()
    with pytest.raises(InputError, match="tensor 'w' is constant; a constant cannot be set"):
        ours.set_tensor(1, np.ones((1, 1), np.float32))


def test_errors_go_through_pickle() -> None:
    ours = drop_in.make(tflq.lite, relu())
    with pytest.raises(ValueError, match="not allocated") as caught:
        ours.get_tensor(1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, InputError)
    assert isinstance(again, ValueError)
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("expected", [ValueError, OSError, TflqError])
def test_delegates_are_refused_as_where_none_is_installed(expected: type[Exception]) -> None:
    for load in (tflq.lite.load_delegate, tflq.lite.experimental.load_delegate, tflq.lite.Delegate):
        with pytest.raises(expected, match=r"^delegate 'libedgetpu\.so\.1': tflq loads none, its kernels are its own"):
            load("libedgetpu.so.1", {"device": "usb"})


def test_the_package_stands_in_for_tf_where_only_lite_is_used() -> None:
    code = "import tflq as tf; print(tf.lite.Interpreter.__name__, tf.lite.experimental.OpResolverType.AUTO.value)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Interpreter 0\n"


def test_there_is_no_handle_and_no_converter() -> None:
    with pytest.raises(RuntimeError, match=r"no handle of a C\+\+ interpreter"):
        drop_in.make(tflq.lite, two_signatures())._native_handle()
    message = r"^tflq\.lite has no TFLiteConverter: .*; use tensorflow\.lite\.TFLiteConverter$"
    with pytest.raises(TflqError, match=message):
        tflq.lite.TFLiteConverter("model")
    with pytest.raises(AttributeError, match=message):
        tflq.lite.TFLiteConverter.from_keras_model("model")
    with pytest.raises(AttributeError, match=r"module 'tflq\.lite' has no attribute 'Nothing'"):
        _ = tflq.lite.Nothing
