"""Recipe files: which of several rules counts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.converters.tflite_quantiser.test_recipes import weight_types, written
from tflq.converters.tflite_quantiser.recipes.files import NAMED, parse_recipe, recipe_of
from tflq.converters.tflite_quantiser.recipes.plan import choose
from tflq.converters.tflite_quantiser.recipes.rules import NO_QUANTIZE, OCTAV, scope_of
from tflq.errors import InputError, OptionError
from tflq.graph import DType


def rule(regex: str = ".*", operation: str = "*", bits: int = 8, **changes: object) -> dict[str, object]:
    weights = {"num_bits": bits, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
    config = {"weight_tensor_config": weights, "compute_precision": "INTEGER", "explicit_dequantize": False}
    found: dict[str, object] = {"regex": regex, "operation": operation, "algorithm_key": "min_max_uniform_quantize"}
    return {**found, "op_config": config, **changes}


def read(*rules: object) -> bytes:
    return json.dumps(rules).encode()


def test_the_last_rule_that_has_a_kernel_counts() -> None:
    rules = parse_recipe(read(rule(bits=8), rule("dense", bits=4), rule("dense", algorithm_key=OCTAV, bits=2)), "f")
    (kept,) = [r for r in rules if r.regex == "dense"]  # "*" replaces all of its expression
    assert kept.algorithm == OCTAV
    assert choose(rules, "FULLY_CONNECTED", ["dense/MatMul"]).rule is kept
    depthwise = choose(rules, "DEPTHWISE_CONV_2D", ["dense/depthwise"])  # int2 has no kernel: the rule before counts
    assert depthwise.rule.config.weights is not None
    assert depthwise.rule.config.weights.bits == 8
    assert choose(rules, "RELU", ["dense/relu"]).rule.algorithm == NO_QUANTIZE


def test_an_operator_is_left_out() -> None:
    left = {"regex": ".*", "operation": "CONV_2D", "algorithm_key": NO_QUANTIZE}
    rules = parse_recipe(read(rule(), left), "f")
    assert choose(rules, "CONV_2D", ["y"]).kind == "float"
    assert choose(rules, "FULLY_CONNECTED", ["y"]).kind == "hybrid"


def test_expressions_are_searched_in_the_names_that_a_node_writes() -> None:
    assert scope_of(["a", "", "b"]) == "a;b;"
    rules = parse_recipe(read(rule("^out;$")), "f")
    assert choose(rules, "CONV_2D", ["out"]).kind == "hybrid"
    assert choose(rules, "CONV_2D", ["out2"]).kind == "float"


def test_old_files_state_the_size_of_blocks() -> None:
    widths = {"num_bits": 4, "block_size": 64}
    config = {"weight_tensor_config": widths, "compute_precision": "INTEGER"}
    (found,) = parse_recipe(read({"operation": "FULLY_CONNECTED", "op_config": config}), "f")
    assert found.config == NAMED["dynamic_wi4b64_afp32"].config


def test_a_file_quantises(tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    path.write_bytes(read(rule(bits=4), rule(operation="DEPTHWISE_CONV_2D")))
    _, graph = written(f"recipe={path}")
    assert tuple(weight_types(graph).values()) == (DType.INT4, DType.INT8, DType.INT4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "f: no JSON"),
        (b"\xff", "f: no JSON"),
        (b"{}", "f: found dict; a recipe is a list"),
        (b"[]", "a list of one rule or more"),
        (b"[1]", "rule 0: found int; allowed is an object"),
        (read(rule(operation="CONV")), "found operation 'CONV'; allowed is"),
        (read(rule(algorithm_key="AWQ")), "found algorithm_key 'AWQ'; allowed is"),
        (read(rule(op_config={"skip_checks": True})), "found skip_checks=true; allowed is false"),
        (read(rule(op_config={"compute_precision": "INTEGER", "explicit_dequantize": True})), "explicit_dequantize"),
        (read(rule(op_config={"compute_precision": "INTEGER", "min_weight_elements": -1})), "min_weight_elements -1"),
        (read(rule(bits=8.5)), "num_bits 8.5; allowed is a whole number"),  # type: ignore[arg-type]
    ],
)
def test_refused_files(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_recipe(content, "f")


def test_refused_rules() -> None:
    with pytest.raises(OptionError, match=r"rule 0: no hybrid kernel of DEPTHWISE_CONV_2D with weights of 4 bits"):
        parse_recipe(read(rule(operation="DEPTHWISE_CONV_2D", bits=4)), "f")
    with pytest.raises(OptionError, match=r"'\(' is no regular expression"):
        parse_recipe(read(rule("(")), "f")
    with pytest.raises(OptionError, match=r"recipe=dynamic_wi3: allowed is a file that ends in .json, or"):
        recipe_of("dynamic_wi3")
