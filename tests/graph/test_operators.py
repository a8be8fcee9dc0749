"""The operator table against TFLite's schema, the registry and files with weights per channel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files
from tests.support.tracked import ROOT
from tflq.api.read_model import read_model
from tflq.converters.tflite.options import options_class
from tflq.graph import Affine, Node
from tflq.graph.operators import OPERATORS, Trait, has_trait, row_of, with_traits
from tflq.interpreter.registry import arithmetic
from tflq.schemas.tflite import BuiltinOperator

FILES = [*sorted((ROOT / "tflq" / "data").glob("*.tflite")), *data_files("models"), *data_files("cases", "keras")[::12]]
BUILTINS = {member.name.lower() for member in BuiltinOperator}


def test_each_row_is_a_builtin() -> None:
    assert set(OPERATORS) - BUILTINS == set()


def test_each_builtin_with_a_kernel_has_a_row() -> None:
    names = {name for kind in ("float", "tflite") for name in arithmetic(kind).kernels}
    assert len(names & BUILTINS) > 100
    assert (names & BUILTINS) - set(OPERATORS) == set()


def test_fuses_equals_the_options_with_a_fused_activation() -> None:
    tables = {name: options_class(name) for name in BUILTINS}
    names = {name for name, table in tables.items() if table is not None and has_activation(table)}
    assert with_traits(Trait.FUSES) == names & set(OPERATORS)
    assert names <= set(OPERATORS)


def has_activation(table: type) -> bool:
    return "fused_activation_function" in {name for base in table.__mro__ for name in vars(base)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_weights_per_channel_lie_along_the_channel_axis(path: Path) -> None:
    for graph in read_model(path).graphs:
        for node in graph.nodes:
            row = row_of(node)
            for position, t in enumerate(node.inputs):
                quantization = graph.tensors[t].quantization if t >= 0 else None
                if isinstance(quantization, Affine) and quantization.is_per_axis and position == row.weights:
                    assert quantization.axis == row.channel_axis, node.name
            if row.bias is not None and row.weights is not None and len(node.inputs) > row.bias >= 0:
                bias = node.inputs[row.bias]
                channels = graph.tensors[node.inputs[row.weights]].shape[row.channel_axis or 0]
                assert bias < 0 or int(np.prod(graph.tensors[bias].shape)) == channels, node.name


def test_roles_go_with_weights() -> None:
    for row in OPERATORS.values():
        has_roles = row.weights is not None and row.channel_axis is not None
        assert has_roles == bool(row.traits & Trait.WEIGHTS), row.name
        assert len({row.data, row.weights, row.bias}) == 3 or not has_roles, row.name


def test_implied_traits() -> None:
    for inner, outer in (
        (Trait.RECTIFIER, Trait.ACTIVATION),
        (Trait.LINEAR, Trait.WEIGHTS),
        (Trait.CONVOLUTION, Trait.LINEAR),
        (Trait.POOL, Trait.WINDOW),
        (Trait.ARITHMETIC, Trait.PAIR),
        (Trait.COMPARISON, Trait.PAIR),
        (Trait.BITWISE, Trait.PAIR),
        *((t, Trait.MOVEMENT) for t in (Trait.RESHAPE, Trait.JOIN, Trait.SPLIT, Trait.CROP, Trait.PAD, Trait.LOOKUP)),
    ):
        assert with_traits(inner) <= with_traits(outer), inner
        assert with_traits(inner, outer) == with_traits(inner) != frozenset()


def test_traits() -> None:
    assert with_traits(Trait.CONVOLUTION) == {"conv_2d", "depthwise_conv_2d"}
    assert has_trait(Node("conv_2d", (), ()), Trait.POOL | Trait.WINDOW)


def test_an_operator_without_a_row_has_no_trait() -> None:
    node = Node("of_a_target", (), ())
    assert not has_trait(node, ~Trait(0))
    assert (row_of(node).name, row_of(node).traits, row_of(node).weights) == ("of_a_target", Trait(0), None)
