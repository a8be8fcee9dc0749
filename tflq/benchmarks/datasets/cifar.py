"""ic01: CIFAR-10's test images that the labels name, pixel by pixel.

CIFAR-10's batches are pickles: their lists, texts and arrays are decoded without executing the pickle.

Source: mlcommons/tiny, benchmark/training/image_classification/perf_samples_loader.py.
"""

from __future__ import annotations

import pickletools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.datasets.archive import read_members
from tflq.benchmarks.labels import Label
from tflq.errors import InputError

_Kind = TypeVar("_Kind")
_MARK = object()
_QUIET = {"PROTO", "FRAME"}
_PUTS = {"BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GETS = {"BINGET", "LONG_BINGET"}
_SIMPLE = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass
class Call:
    """A call in a pickle, which is not executed.

    Attributes:
        function: Function to call: "module name".
        arguments: Arguments of the call.
        state: State for the result of the call.
    """

    function: object
    arguments: object
    state: object = None


def read_values(content: bytes) -> object:
    """Return the values of a pickle: dicts, lists, tuples, texts (byte strings as latin-1), numbers, and `Call`.

    Raises:
        ValueError: The content is not a pickle, or uses other opcodes.
    """
    stack: list[object] = []
    memo: dict[int, object] = {}
    for opcode, argument, place in pickletools.genops(content):
        name = opcode.name
        if name == "STOP":
            return stack.pop()
        if name in _PUTS:
            memo[len(memo) if argument is None else int(argument)] = stack[-1]
        elif name in _GETS:
            stack.append(memo[int(argument or 0)])
        elif name not in _QUIET and not _step(name, argument, stack):
            raise ValueError(f"{name} at byte {place}")
    raise ValueError("no end")


def bytes_of(value: object) -> bytes:
    """Return the bytes of a text, or of an array, whichever way Python 2 or 3 wrote them.

    Raises:
        ValueError: The value is neither.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, Call) and isinstance(value.state, tuple) and value.state:
        return bytes_of(value.state[-1])
    raise ValueError(f"{type(value).__name__} instead of bytes")


def _step(name: str, argument: object, stack: list[object]) -> bool:
    """Execute one opcode; return whether it is known."""
    if name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
        stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
    elif name == "MARK":
        stack.append(_MARK)
    elif name in _SIMPLE:
        stack.append(_SIMPLE[name])
    elif name in _TUPLES:
        count = _TUPLES[name]
        stack[-count:] = [tuple(stack[-count:])]
    elif name == "TUPLE":
        stack.append(tuple(_to_mark(stack)))
    elif name in ("APPEND", "APPENDS"):
        items = _to_mark(stack) if name == "APPENDS" else [stack.pop()]
        _require_type(stack[-1], list).extend(items)
    elif name in ("SETITEM", "SETITEMS"):
        items = _to_mark(stack) if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
        _require_type(stack[-1], dict).update(zip(items[::2], items[1::2], strict=True))
    elif name == "STACK_GLOBAL":
        stack[-2:] = [f"{stack[-2]} {stack[-1]}"]
    elif name == "REDUCE":
        stack[-2:] = [_replace_call(stack[-2], stack[-1])]
    elif name == "BUILD":
        state = stack.pop()
        _require_type(stack[-1], Call).state = state
    elif isinstance(argument, (int, str, bytes)):
        stack.append(argument)
    else:
        return False
    return True


def _replace_call(function: object, arguments: object) -> object:
    """Return the bytes that Python 3 pickled as a text with a call to encode it as latin-1; else the call."""
    is_text = function == "_codecs encode" and isinstance(arguments, tuple) and arguments[1:] == ("latin1",)
    return bytes_of(arguments[0]) if is_text and isinstance(arguments, tuple) else Call(function, arguments)


def _to_mark(stack: list[object]) -> list[object]:
    """Remove and return the values above the last mark; the mark is removed, too."""
    place = max(n for n, value in enumerate(stack) if value is _MARK)
    items = stack[place + 1 :]
    del stack[place:]
    return items


def _require_type(value: object, kind: type[_Kind]) -> _Kind:
    if not isinstance(value, kind):
        raise ValueError(f"{type(value).__name__} instead of {kind.__name__}")
    return value


_BATCH = "test_batch"
_SHAPE = (3, 32, 32)


def build(sources: Sequence[Path], labels: Sequence[Label]) -> dict[str, bytes]:
    """Return each file of the labels: uint8[32, 32, 3] of the image with its name.

    Args:
        sources: Path of cifar-10-python.tar.gz, or of its folder.
        labels: Labels; X.bin is the image X.png.

    Raises:
        InputError: No test_batch of CIFAR-10, a missing image, or an image of another class.
    """
    batch = next((b for source in sources for _, b in read_members(source, lambda n: Path(n).name == _BATCH)), None)
    if batch is None:
        raise InputError(f"{sources[0]}: contains no {_BATCH}; name cifar-10-python.tar.gz, or its folder")
    names, classes, pixels = _content(sources[0], batch)
    places = {name.removesuffix("png"): n for n, name in enumerate(names)}
    files = {}
    for label in labels:
        n = places.get(label.file.removesuffix("bin"))
        if n is None:
            raise InputError(f"{sources[0]}: {_BATCH} has no image for {label.file}")
        if classes[n] != label.true_class:
            raise InputError(
                f"{sources[0]}: the image for {label.file} is of class {classes[n]}, not {label.true_class}"
            )
        files[label.file] = pixels[n].reshape(_SHAPE).transpose(1, 2, 0).tobytes()
    return files


def _content(source: Path, batch: bytes) -> tuple[list[str], list[int], NDArray[np.uint8]]:
    try:
        content = read_values(batch)
        if not isinstance(content, dict):
            raise ValueError(f"{type(content).__name__} instead of dict")
        parts = {bytes_of(key): value for key, value in content.items()}
        names = [bytes_of(name).decode("utf-8") for name in parts[b"filenames"]]
        pixels = np.frombuffer(bytes_of(parts[b"data"]), np.uint8).reshape(len(names), int(np.prod(_SHAPE)))
        classes = [int(one) for one in parts[b"labels"]]
        if len(classes) != len(names):
            raise ValueError(f"{len(names)} names, {len(classes)} labels")
    except Exception as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise InputError(f"{source}: {_BATCH} is not CIFAR-10's Python version: {reason}") from None
    return names, classes, pixels
