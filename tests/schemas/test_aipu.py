"""Compass IR: the vendor's files go through reader and writer unchanged; damaged text is refused by line and key."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files
from tests.support.refused import damaged
from tflq.errors import FormatError, TflqError, UnsupportedError
from tflq.schemas.aipu import Constant, Edge, Layer, Network, read_network, write_network
from tflq.schemas.aipu.text import format_value

FILES = data_files("golden", "aipu", pattern="*.txt")

# Written by hand, with other digits than the Parser prints: layers/ that no TFLite operator reaches.
BY_HAND = ("layers",)


@pytest.mark.skipif(not FILES, reason="TFLQ_DATA is not set: no IR of the vendor on this machine")
def test_every_ir_returns_unchanged() -> None:
    for path in FILES:
        text, binary = path.read_text(encoding="utf-8"), path.with_suffix(".bin").read_bytes()
        network = read_network(text, binary)
        again_text, again_binary = write_network(network)
        again = read_network(again_text, again_binary)
        assert again.header == network.header, path
        assert again.layers == network.layers, path
        assert again_binary == binary, path
        if path.parents[1].name not in BY_HAND or network.is_quantized:
            assert again_text == text, path


def _network() -> Network:
    edge, top = Edge("x_0", (1, 4), "int8"), Edge("y_0", (1, 2), "int8")
    weights = Constant(np.arange(8, dtype=np.int8).reshape(2, 4), "int8")
    return Network(
        {"model_name": "m", "layer_number": 2, "input_tensors": ("x_0",), "output_tensors": ("y_0",)},
        (
            Layer("x", "Input", (), (edge,), {"layer_top_scale": (1.5,)}),
            Layer("y", "FullyConnected", (edge,), (top,), {"weights": weights, "num_output": 2}),
        ),
    )


def test_text() -> None:
    text, binary = write_network(_network())
    assert binary == bytes(range(8))
    assert text.splitlines()[:4] == ["model_name=m", "layer_number=2", "input_tensors=[x_0]", "output_tensors=[y_0]"]
    assert "layer_bottom_shape=[[1,4]]\n" in text
    assert "weights_type=int8\nweights_offset=0\nweights_size=8\nweights_shape=[2,4]\nnum_output=2\n" in text


@damaged(
    ("layer_type=Input\n", "", "line 6: the section that begins here has no key layer_type"),
    ("model_name=m\n", "", "line 1: the section that begins here has no key model_name"),
    ("layer_number=2", "layer_number=3", "line 2: layer_number=3, but 2 layers follow"),
    ("num_output=2", "num_output=2=3", "line 30: 'num_output=2=3': allowed is key=value"),
    ("num_output=2", "num_output", "line 30: 'num_output': allowed is key=value"),
    ("num_output=2", "layer_id=1", "line 30: layer_id stands twice in its section, first in line 17"),
    ("layer_top_shape=[[1,4]]", "layer_top_shape=[[1,4]", "line 13: layer_top_shape: .*a bracket is not closed"),
    ("layer_top_shape=[[1,4]]", "layer_top_shape=[[1,]]", "line 13: layer_top_shape: .*an entry is missing"),
    ("layer_top_shape=[[1,4]]", "layer_top_shape=[[1]]]", "line 13: layer_top_shape: .*text behind"),
    ("layer_top_shape=[[1,4]]", "layer_top_shape=[[1,-4]]", "line 13: layer_top_shape: .*is no shape"),
    ("layer_top_shape=[[1,4]]", "layer_top_shape=4", "line 13: layer_top_shape=4: allowed is a list"),
    ("layer_top_shape=[[1,4]]", "layer_top_shape=" + "[" * 20, "line 13: .*nested deeper"),
    ("layer_top_type=[int8]", "layer_top_type=[int7]", "line 14: layer_top_type: 'int7' is no type"),
    ("layer_top_type=[int8]", "layer_top_type=[]", "line 12: layer_top has 1 names, 1 shapes and 0 types"),
    ("layer_bottom=[x_0]", "layer_bottom=[z_0]", "line 20: layer_bottom: no earlier layer writes 'z_0'"),
    ("layer_name=y", "layer_name=x", "line 18: layer_name 'x' stands twice"),
    ("layer_top=[y_0]", "layer_top=[x_0]", "line 23: layer_top 'x_0' is written twice"),
    ("output_tensors=[y_0]", "output_tensors=[q]", "line 4: output_tensors: no layer writes 'q'"),
    ("layer_id=1", "layer_id=7", "line 17: layer_id=7, allowed is 1"),
    ("weights_offset=0", "weights_offset=1", "line 27: weights_offset=1 with 8 bytes lies outside .* 8 bytes"),
    ("weights_offset=0", "weights_offset=-1", "line 27: weights_offset=-1"),
    ("weights_size=8", "weights_size=9", "line 28: weights_size=9; int8.2, 4. takes 8"),
    ("weights_size=8\n", "", "line 17: .*no key weights_size"),
    ("weights_type=int8", "weights_type=int", "line 26: weights_type: 'int' is no type"),
)
def test_damage_is_refused_by_line_and_key(old: str, new: str, message: str) -> None:
    text, binary = write_network(_network())
    assert old in text
    with pytest.raises(FormatError, match=message):
        read_network(text.replace(old, new, 1), binary)


def test_subgraphs_are_refused() -> None:
    text, binary = write_network(_network())
    with pytest.raises(UnsupportedError, match=r"line \d+: subgraph_name"):
        read_network(text + "\nsubgraph_name=then\n", binary)


def test_empty_text() -> None:
    with pytest.raises(FormatError, match="text is empty"):
        read_network("\n\n", b"")


@pytest.mark.parametrize("name", ["a=b", "a,b", "a[0]", "a\nb"])
def test_reserved_characters_in_names(name: str) -> None:
    network = _network()
    renamed = Network({**network.header, "model_name": name}, network.layers)
    with pytest.raises(FormatError, match="keeps for itself"):
        write_network(renamed)


def test_any_cut_of_a_text_is_read_or_refused() -> None:
    text, binary = write_network(_network())
    for end in range(0, len(text), 3):
        with contextlib.suppress(TflqError):
            read_network(text[:end], binary)


def test_files_are_found() -> None:
    assert all(isinstance(path, Path) and path.with_suffix(".bin").exists() for path in FILES)


def test_a_number_of_numpy_is_no_value() -> None:
    """Its `repr` names its type, which no tool reads: np.False_ in `ignore_scale_zp`, np.int32(10) in `splits`."""
    for value in (np.bool_(False), np.int32(10), np.float32(0.5)):
        with pytest.raises(FormatError, match="allowed are bool, int, float, str"):
            format_value(value)  # type: ignore[arg-type]
