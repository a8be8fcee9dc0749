"""Limits on reading, and how limits are stated: each is refused in one line, and read when it is raised."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from tests.hostile.raised import refused_unless_raised
from tests.support.command import tflq
from tests.support.draw import affine
from tests.support.refused import refuses
from tests.support.tracked import ROOT
from tests.support.types import INT8
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import OptionError
from tflq.graph import DType, GraphBuilder
from tflq.limits import Limits, export_limits, from_environment, from_words
from tflq.schemas import tflite as schema

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
PLAIN = {"fused_activation_function": "none"}


def reading(table: schema.Model) -> Callable[[Limits], object]:
    content = schema.encode_model(table)
    return lambda limits: model_from_bytes(content, "hostile", limits)


def one_constant(dtype: DType, count: int, uses: int = 1) -> schema.Model:
    """A file whose only buffer with content holds `count` elements, and `uses` tensors that share it."""
    b = GraphBuilder()
    x = b.input("x", (count,), dtype, affine(dtype, 1))
    given = [b.constant(f"c{i}", np.zeros(count, np.int8), affine(dtype, 1), dtype) for i in range(uses)]
    graph = b.build(
        [b.add("concatenation", [x, *given], ((uses + 1) * count,), dtype, affine(dtype, 1), axis=0, **PLAIN)]
    )
    table = schema.decode_model(model_to_bytes(graph), "model")
    table.metadata = None
    tensors = table.subgraphs[0].tensors
    for t in given:
        tensors[t].buffer = tensors[given[0]].buffer
    return table


def test_constants_that_are_unpacked() -> None:
    message = refused_unless_raised(reading(one_constant(DType.INT4, 1000)), "max_memory", 1000)
    assert "hostile: subgraph 0: tensor 1 'c0': bytes of all values copied out of the file" in message


def test_values_of_which_many_tensors_leave_a_part() -> None:
    """Bytes behind the last element are kept for writing, once for each tensor."""
    table = one_constant(INT8, 1000, uses=5)
    for tensor in table.subgraphs[0].tensors[1:6]:
        tensor.shape = np.array([10], np.int32)
    refused_unless_raised(reading(table), "max_memory", 5 * 990)


def test_metadata_that_share_a_buffer() -> None:
    table = one_constant(INT8, 1000)
    buffer = table.subgraphs[0].tensors[1].buffer
    table.metadata = [schema.Metadata(name=f"m{i}", buffer=buffer) for i in range(5)]
    refused_unless_raised(reading(table), "max_memory", 5000)


@pytest.mark.parametrize(("name", "count"), [("max_tensors", 3), ("max_operators", 1), ("max_subgraphs", 1)])
def test_counts_of_a_file(name: str, count: int) -> None:
    table = one_constant(INT8, 4)
    if count > 1:
        assert "hostile: tensors of all subgraphs" in refused_unless_raised(reading(table), name, count)
        return
    twice = replace_subgraphs(table)
    refused_unless_raised(reading(twice), name, 2 * count)


def replace_subgraphs(table: schema.Model) -> schema.Model:
    table.subgraphs = table.subgraphs * 2
    return table


@pytest.mark.parametrize("command", ["run", "verify", "inspect", "compare", "diff"])
def test_the_option_of_the_command_line(command: str) -> None:
    files = [DIGITS] * (2 if command in ("compare", "diff") else 1)
    line = tflq(command, *files, "--limit", "tensors=2").refused()
    assert "tensors of all subgraphs: found 24, 2 are allowed; raise the limit with --limit tensors=N" in line


def test_the_environment_and_the_option_over_it() -> None:
    lower = {"TFLQ_MAX_MEMORY": "1K"}
    assert "1024 are allowed" in tflq("run", DIGITS, environment=lower).refused()
    assert tflq("run", DIGITS, "--limit", "memory=1M", environment=lower).status == 0


test_words_that_are_no_limits = refuses(
    lambda word: from_words([word]),
    OptionError,
    {
        "much=1": "no limit is called 'much'; there are bytes, memory, tensors",
        "memory=0": "limit memory is '0'; a positive number is allowed, as 4096, 64K, 512M or 8G",
        "memory=-1": "a positive number",
        "memory=9P": "a positive number",
        "memory": "limit memory is ''",
    },
)


def test_limits_for_processes_that_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFLQ_MAX_DEPTH", "9")
    stated = Limits(max_depth=7, max_memory=5)
    with export_limits(stated):
        assert from_environment() == stated
        assert os.environ["TFLQ_MAX_MEMORY"] == "5"
    assert from_environment() == Limits(max_depth=9)
    assert "TFLQ_MAX_MEMORY" not in os.environ


def test_numbers_that_are_no_limits() -> None:
    with pytest.raises(OptionError, match="max_depth is 0; a positive number is allowed"):
        Limits(max_depth=0)
    assert from_words(["memory=8G", "subgraph-runs=5"]) == Limits(max_memory=8 << 30, max_subgraph_runs=5)
