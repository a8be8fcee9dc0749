"""How many inputs and outputs a file's operators have: what TFLite's kernels say when they are given too many."""

from __future__ import annotations

import re
from contextlib import suppress

import numpy as np
import pytest

from tflq.converters.tflite import model_to_bytes
from tflq.converters.tflite.operand_counts import check_counts
from tflq.errors import GraphError, OracleError
from tflq.graph import Attributes, DType, Graph, GraphBuilder, Node
from tflq.oracle import Oracle
from tflq.schemas import tflite as schema

MOST = {"inputs": 51, "outputs": 7}
SOME, FEW = (set(range(1, most + 1)) for most in MOST.values())
OTHERWISE: dict[str, dict[str, set[int]]] = {
    # a second check, an option or another kernel of the operator decides
    "conv_2d": {"inputs": {3}},
    "bidirectional_sequence_lstm": {"outputs": {1, 2}},
    "bidirectional_sequence_rnn": {"outputs": {1, 2}},
    "fully_connected": {"outputs": {1, 2}},
    "lstm": {"inputs": {5, 20, 24}, "outputs": {1, 4}},
    # TFLite looks at other things first, or at nothing
    "add_n": {"inputs": SOME, "outputs": {1}},
    "bucketize": {"inputs": {1}, "outputs": {1}},
    "call_once": {"inputs": {0}, "outputs": {0}},
    "concatenation": {"inputs": SOME, "outputs": {1}},
    "dynamic_update_slice": {"inputs": {3}, "outputs": {1}},
    "lsh_projection": {"inputs": {2, 3}},
    "mirror_pad": {"inputs": {2}, "outputs": {1}},
    "non_max_suppression_v4": {"inputs": {5}, "outputs": {2}},
    "non_max_suppression_v5": {"inputs": {6}, "outputs": {3}},
    "pack": {"inputs": SOME, "outputs": {1}},
    "reduce_window": {"inputs": {5}, "outputs": {1}},
    "sign": {"outputs": {1}},
    "split": {"outputs": FEW},
    "split_v": {"outputs": FEW},
    "stablehlo_pad": {"inputs": {2}, "outputs": {1}},
    "stablehlo_reduce_window": {"inputs": {2}, "outputs": {1}},
    "unpack": {"outputs": FEW},
    "var_handle": {"inputs": {0}, "outputs": {1}},
}
OPERATORS = [name.lower() for name in schema.BuiltinOperator.__members__ if name not in ("CUSTOM", "WHILE")]


def crowded(operator: str, inputs: int, outputs: int) -> Graph:
    """An operator that reads one tensor again and again."""
    b = GraphBuilder(operator)
    x = b.input("x", (1, 4), DType.FLOAT32)
    ys = [b.tensor(f"y{i}", (1, 4), DType.FLOAT32) for i in range(outputs)]
    b.node(operator, [x] * inputs, ys, 2 if operator == "broadcast_to" else 1)
    return b.build(ys)


def said(oracle: Oracle, operator: str, what: str, inputs: int, outputs: int) -> set[int]:
    """Return the counts that TFLite asks for where it refuses these; none where it says nothing of them."""
    try:
        graph = crowded(operator, inputs, outputs)
        oracle.run(model_to_bytes(graph), [np.zeros((1, 1, 4), np.float32)], tensors="outputs")
    except OracleError as refusal:
        words = str(refusal)
    else:
        return set()
    name = what.capitalize()
    if not re.search(rf"Num{name}\(&?node\)|{what}->size|num_{what}\b|expects [\d or]+ {what}", words):
        return set()
    ways = (r"\(\d+ != (\d+)\)", r"== (\d+)", r"\d+(?= or)|(?<=or )\d+")
    found = {int(number) for number in next(filter(None, (re.findall(way, words) for way in ways)))}
    return found | {max(found) + 1} if "has_bias ||" in words else found


def taken(operator: str, what: str, inputs: int, outputs: int) -> set[int]:
    """Return the counts of inputs, or outputs, that are taken beside so many outputs, or inputs."""
    found = set()
    for count in range(MOST[what] + 1):
        counts = (count, outputs) if what == "inputs" else (inputs, count)
        node = Node(operator, (0,) * counts[0], tuple(range(counts[1])), Attributes(), "N")
        with suppress(GraphError):
            check_counts(node, "here")
            found.add(count)
    return found


@pytest.mark.parametrize("operator", OPERATORS)
def test_counts_are_those_of_the_kernels(optimized_oracle: Oracle, operator: str) -> None:
    """Operators of which TFLite says nothing, and OTHERWISE neither, take any number."""
    own = OTHERWISE.get(operator, {})
    inputs = own.get("inputs") or said(optimized_oracle, operator, "inputs", MOST["inputs"], 1)
    fewest = min(inputs, default=1)
    outputs = own.get("outputs") or said(optimized_oracle, operator, "outputs", fewest, MOST["outputs"])
    least = min(outputs, default=1)
    assert taken(operator, "inputs", fewest, least) == (inputs or set(range(MOST["inputs"] + 1)))
    assert taken(operator, "outputs", fewest, least) == (outputs or set(range(MOST["outputs"] + 1)))
