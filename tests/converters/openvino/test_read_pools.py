"""Pools of an IR: which paddings are read, and that they are OpenVINO's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.support.openvino import Runtime
from tflq.converters.openvino.ir import Builder
from tflq.converters.openvino.ir.files import network_to_bytes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.errors import FormatError, UnsupportedError
from tflq.interpreter import Engine

SHAPE = (1, 2, 5, 6)


def pool(
    kind: str, kernel: tuple[int, int], stride: tuple[int, int], size: tuple[int, int], **more: str
) -> tuple[bytes, bytes]:
    """Return the files of one pool with the size of its output."""
    b = Builder("pool")
    data = {"kernel": "{},{}".format(*kernel), "strides": "{},{}".format(*stride), "rounding_type": "floor"}
    b.result("y", b.add(kind, "pool", [b.parameter("x", SHAPE)], (1, 2, *size), **{**data, **more}))
    return network_to_bytes(b.build())


def check(files: tuple[bytes, bytes]) -> None:
    x = np.random.default_rng(3).normal(size=(2, *SHAPE)).astype(np.float32)
    graph = model_from_bytes(*files, "pool.xml").main
    assert np.allclose(
        Engine(graph, "float").run([x])[graph.outputs[0]], Runtime(*files).run([x]), rtol=1e-5, atol=1e-6
    )


PADS = [((0, 0), (0, 0)), ((0, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 0), (0, 1)), ((1, 0), (0, 0)), ((0, 1), (0, 0)),
        ((1, 1), (1, 1))]  # fmt: skip


@pytest.mark.parametrize(("begin", "end"), PADS)
@pytest.mark.parametrize(("kind", "excluded"), [*product(["AvgPool"], ["", "false", "true"]), ("MaxPool", "")])
def test_padding(kind: str, excluded: str, begin: tuple[int, int], end: tuple[int, int]) -> None:
    """Of 2 x 2 with steps of 1 TFLite has none, and one row and column behind the image that do not count."""
    size = (5 + begin[0] + end[0] - 1, 6 + begin[1] + end[1] - 1)
    pads = {"pads_begin": "{},{}".format(*begin), "pads_end": "{},{}".format(*end), "auto_pad": "explicit"}
    files = pool(kind, (2, 2), (1, 1), size, **pads, **({"exclude-pad": excluded} if excluded else {}))
    is_padded = (begin, end) != ((0, 0), (0, 0))
    if is_padded and kind == "AvgPool" and excluded != "true":
        with pytest.raises(
            UnsupportedError, match=r"padding that counts as zeros \(exclude-pad=false\); exclude-pad=true"
        ):
            model_from_bytes(*files, "pool.xml")
    elif is_padded and (begin, end) != ((0, 0), (1, 1)):
        with pytest.raises(UnsupportedError, match="padding that is neither same_upper nor none; pools of TFLite have"):
            model_from_bytes(*files, "pool.xml")
    else:
        check(files)


@pytest.mark.parametrize(("auto", "is_read"), [("same_upper", True), ("same_lower", False), ("valid", True)])
@pytest.mark.parametrize(("kind", "excluded"), [*product(["AvgPool"], ["false", "true"]), ("MaxPool", "")])
def test_padding_that_has_a_name(kind: str, excluded: str, auto: str, is_read: bool) -> None:
    size = (4, 5) if auto == "valid" else (5, 6)
    pads = {"pads_begin": "0,0", "pads_end": "0,0", "auto_pad": auto}
    files = pool(kind, (2, 2), (1, 1), size, **pads, **({"exclude-pad": excluded} if excluded else {}))
    if is_read and (auto == "valid" or excluded != "false"):
        check(files)
    else:
        with pytest.raises(UnsupportedError, match="padding that"):
            model_from_bytes(*files, "pool.xml")


@pytest.mark.parametrize("kind", ["AvgPool", "MaxPool"])
@pytest.mark.parametrize(("kernel", "stride"), [*product([(1, 1), (2, 3), (5, 6)], [(1, 1), (2, 1), (1, 3)])])
def test_windows(kind: str, kernel: tuple[int, int], stride: tuple[int, int]) -> None:
    size = tuple((n - k) // s + 1 for n, k, s in zip(SHAPE[2:], kernel, stride, strict=True))
    more = {"exclude-pad": "true"} if kind == "AvgPool" else {}
    pads = {"pads_begin": "0,0", "pads_end": "0,0"}
    check(pool(kind, kernel, stride, (size[0], size[1]), **pads, **more))


@pytest.mark.parametrize("kind", ["AvgPool", "MaxPool"])
def test_what_is_not_read(kind: str) -> None:
    pads = {"pads_begin": "0,0", "pads_end": "0,0", "exclude-pad": "true"}
    for name in ("ceil", "ceil_torch"):
        with pytest.raises(UnsupportedError, match=f"rounding_type {name}; floor is read"):
            model_from_bytes(*pool(kind, (2, 2), (1, 1), (4, 5), **{**pads, "rounding_type": name}), "pool.xml")
    for stride, kernel in (((0, 1), (2, 2)), ((1, -1), (2, 2)), ((1, 1), (0, 2)), ((1, 1), (2, 0))):
        with pytest.raises(FormatError, match="all are 1 or more"):
            model_from_bytes(*pool(kind, kernel, stride, (4, 5), **pads), "pool.xml")
    for text in ("2147483648,0", "0,-2147483648"):
        with pytest.raises(FormatError, match="has 2 numbers; 2 small ones are needed"):
            model_from_bytes(*pool(kind, (2, 2), (1, 1), (4, 5), **{**pads, "pads_end": text}), "pool.xml")
    for text in ("-1,0", "0,-2147483647"):
        with pytest.raises(FormatError, match=r"pads \(0, 0\) and .*; they are 0 or more"):
            model_from_bytes(*pool(kind, (2, 2), (1, 1), (4, 5), **{**pads, "pads_end": text}), "pool.xml")
    with pytest.raises(
        FormatError, match="auto_pad 'other'; known are explicit, notset, same_upper, same_lower, valid"
    ):
        model_from_bytes(*pool(kind, (2, 2), (1, 1), (4, 5), **{**pads, "auto_pad": "other"}), "pool.xml")
