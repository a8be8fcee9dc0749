"""Recipe files: which of several rules applies, and what is refused."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.converters.tflite_quantizer.recipe_helpers import needs_package, network, weight_types, written
from tflq.converters.settings import parse_settings
from tflq.converters.tflite_quantizer import TFLITE
from tflq.converters.tflite_quantizer.recipes.rules import NAMED, parse_recipe, read_recipe
from tflq.errors import InputError, MissingExtraError, OptionError
from tflq.graph import DType


def rule(regex: str = ".*", operation: str = "*", bits: int = 8, **changes: object) -> dict[str, object]:
    weights = {"num_bits": bits, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
    config = {"weight_tensor_config": weights, "compute_precision": "INTEGER", "explicit_dequantize": False}
    found: dict[str, object] = {"regex": regex, "operation": operation, "algorithm_key": "min_max_uniform_quantize"}
    return {**found, "op_config": config, **changes}


def read(*rules: object) -> bytes:
    return json.dumps(rules).encode()


def types(tmp_path: Path, *rules: object) -> tuple[DType, ...]:
    """Return the types of weights of a convolution, a depthwise one and a product."""
    path = tmp_path / "recipe.json"
    path.write_bytes(read(*rules))
    _, graph = written(f"recipe={path}")
    return tuple(weight_types(graph).values())


@needs_package
def test_a_file_quantizes(tmp_path: Path) -> None:
    assert types(tmp_path, rule(bits=4), rule(operation="DEPTHWISE_CONV_2D")) == (DType.INT4, DType.INT8, DType.INT4)


@needs_package
def test_the_last_rule_that_has_a_kernel_applies(tmp_path: Path) -> None:
    last = rule("[0-9]", algorithm_key="OCTAV", bits=4)  # int4 has no kernel of the depthwise convolution
    assert types(tmp_path, rule(bits=8), last) == (DType.INT4, DType.INT8, DType.INT4)


@needs_package
def test_an_operator_is_left_out(tmp_path: Path) -> None:
    left = {"operation": "CONV_2D", "algorithm_key": "no_quantize"}
    assert types(tmp_path, rule(), left) == (DType.FLOAT32, DType.INT8, DType.INT8)


@needs_package
def test_expressions_are_searched_in_the_names_that_a_node_writes(tmp_path: Path) -> None:
    graph = network()
    name = graph.tensors[graph.nodes[1].outputs[0]].name
    assert types(tmp_path, rule(f"^{name};$")) == (DType.FLOAT32, DType.INT8, DType.FLOAT32)
    assert types(tmp_path, rule(f"^{name}$")) == (DType.FLOAT32,) * 3


@needs_package
def test_old_files_state_the_size_of_blocks(tmp_path: Path) -> None:
    config = {"weight_tensor_config": {"num_bits": 4, "block_size": 64}, "compute_precision": "INTEGER"}
    path = tmp_path / "recipe.json"
    path.write_bytes(read({"operation": "FULLY_CONNECTED", "op_config": config}))
    assert written(f"recipe={path}")[0] == written("recipe=dynamic_wi4b64_afp32")[0]


@needs_package
@pytest.mark.parametrize("name", NAMED)
def test_names_are_those_of_the_package(name: str) -> None:
    recipes, manager = (import_module(f"ai_edge_quantizer.{module}") for module in ("recipe", "recipe_manager"))
    words = name.split("_")
    if hasattr(recipes, name):
        theirs = getattr(recipes, name)()
    elif words[2:] and words[2] in ("mse", "octav", "gptq", "oscar"):  # a function with the algorithm as its argument
        theirs = getattr(recipes, f"dynamic_{words[1]}_afp32")(algorithm_key=words[2].upper())
    else:
        pytest.skip("the package has no function for this recipe")
    managers = manager.RecipeManager(), manager.RecipeManager()
    for kept, rules in zip(managers, (theirs, [NAMED[name]]), strict=True):
        kept.load_quantization_recipe(rules)
    assert managers[0].get_quantization_recipe() == managers[1].get_quantization_recipe()


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    for name in [name for name in sys.modules if name.startswith("ai_edge_quantizer.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"recipes need ai-edge-quantizer: pip install 'tflq\[recipes\]'"):
        TFLITE.quantize(network(), parse_settings(TFLITE.settings, ["recipe=dynamic_wi8_afp32"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "f: no JSON"),
        (b"\xff", "f: no JSON"),
        (b"[" * 100000, "f: no JSON"),
        (b"{}", "f: dict; a recipe is a list"),
        (b"[]", "a list of one rule or more"),
        (b"[1]", "rule 0: int; allowed is an object"),
        (read(rule(operation=1)), "operation 1; allowed is a word"),  # type: ignore[arg-type]
        (read(rule(op_config=[])), "op_config is list; allowed is an object"),
        (read(rule(op_config={"skip_checks": True})), "skip_checks=true; allowed is false"),
    ],
)
def test_refused_files(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_recipe(content, "f")


def test_refused_expressions_and_names() -> None:
    with pytest.raises(OptionError, match=r"f, rule 0: '\(' is no regular expression"):
        parse_recipe(read(rule("(")), "f")
    with pytest.raises(OptionError, match=r"recipe=dynamic_wi3: allowed is a file that ends in .json, or"):
        read_recipe("dynamic_wi3")


@needs_package
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (rule(operation="CONV"), "ai-edge-quantizer: .*CONV"),
        (rule(algorithm_key="AWQ"), "Unsupported algorithm key: AWQ"),
        (rule(op_config={"compute_precision": "INTEGER"}), "missing 'weight_tensor_config'"),
        (rule(operation="DEPTHWISE_CONV_2D", bits=4), "ai-edge-quantizer: .*DEPTHWISE_CONV_2D"),
        (rule(op_config={"weight_tensor_config": {"num_bits": 8}, "words": 1}), "unexpected keyword argument 'words'"),
        (rule(op_config={"weight_tensor_config": 8}), "ai-edge-quantizer: "),
    ],
)
def test_rules_that_the_package_refuses(entry: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    path.write_bytes(read(entry))
    with pytest.raises(OptionError, match=message) as refused:
        TFLITE.quantize(network(), parse_settings(TFLITE.settings, [f"recipe={path}"]))
    assert "\n" not in str(refused.value)
