"""Rules of a recipe, as ai-edge-quantizer saves them: by the recipe's name, from a file, and by the target's keys.

A rule is an object of `regex`, `operation`, `algorithm_key` and `op_config`. The package searches the regex in the
scope of a node, which is the names of its outputs, a ";" after each. The last matching rule that its policy allows
applies. A rule for operation "*" removes all earlier rules with the same regex.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.errors import InputError, OptionError
from tflq.files import read_bytes

Rule = dict[str, object]
"""One rule, of types that JSON has."""

ANY = "*"
NO_QUANTIZE = "no_quantize"
MIN_MAX = "min_max_uniform_quantize"
FLOAT_CASTING = "float_casting"
GPTQ = "GPTQ"
OSCAR = "OSCAR"
_HADAMARD = "DECOMPOSED_HADAMARD_ROTATION"
_CHANNELWISE, _TENSORWISE = "CHANNELWISE", "TENSORWISE"

LEFT: Rule = {"algorithm_key": NO_QUANTIZE}
"""A rule that leaves nodes in float, without regex and operation."""


def make_rule(
    weight_bits: int,
    activation_bits: int = 0,
    *,
    is_integer: bool = True,
    granularity: str = _CHANNELWISE,
    algorithm: str = MIN_MAX,
    least_weights: int = 0,
) -> Rule:
    """Return a rule for all nodes.

    Args:
        weight_bits: Width of the weights.
        activation_bits: Width of the activations, 8 with a zero point or 16 without; 0 leaves them float32.
        is_integer: True if the kernel computes in integers; otherwise a DEQUANTIZE follows the weights.
        granularity: Extent of a scale of the weights: TENSORWISE, CHANNELWISE, BLOCKWISE_32 and so on.
        algorithm: Name of the algorithm that computes scales and quantized values.
        least_weights: Smallest number of weights that is quantized.
    """
    config: dict[str, object] = {
        "weight_tensor_config": _widths(weight_bits, True, granularity),
        "compute_precision": "INTEGER" if is_integer else "FLOAT",
        "explicit_dequantize": not is_integer,
        "min_weight_elements": least_weights,
    }
    if activation_bits:
        config["activation_tensor_config"] = _widths(activation_bits, activation_bits == 16)
    return {"regex": ".*", "operation": ANY, "algorithm_key": algorithm, "op_config": config}


def _widths(bits: int, symmetric: bool, granularity: str = _TENSORWISE, dtype: str = "INT") -> dict[str, object]:
    return {"num_bits": bits, "symmetric": symmetric, "granularity": granularity, "dtype": dtype}


def _half_rule() -> Rule:
    rule = make_rule(16, is_integer=False, algorithm=FLOAT_CASTING)
    config = cast("dict[str, object]", rule["op_config"])
    config["weight_tensor_config"] = _widths(16, True, dtype="FLOAT")
    return rule


def _name_rules() -> Iterator[tuple[str, Rule]]:
    for bits in (8, 4):
        yield f"dynamic_wi{bits}_afp32", make_rule(bits)
        yield f"weight_only_wi{bits}_afp32", make_rule(bits, is_integer=False)
        for activation_bits in (8, 16):
            yield f"static_wi{bits}_ai{activation_bits}", make_rule(bits, activation_bits)
        for algorithm in ("MSE", "OCTAV", GPTQ, OSCAR):
            yield f"dynamic_wi{bits}_{algorithm.lower()}_afp32", make_rule(bits, algorithm=algorithm)
    for bits in (8, 4, 2):
        yield f"dynamic_wi{bits}c_afp32", make_rule(bits)
        yield f"dynamic_wi{bits}c_hr_afp32", make_rule(bits, algorithm=_HADAMARD)
    for bits in (4, 2):
        for size in (32, 64, 128, 256):
            yield f"dynamic_wi{bits}b{size}_afp32", make_rule(bits, granularity=f"BLOCKWISE_{size}")
    yield "dynamic_legacy_wi8_afp32", make_rule(8, least_weights=1024)
    yield "float16", _half_rule()


NAMED = dict(sorted(_name_rules()))
"""Rules by the package's names of recipes, and by names of the same form for arguments of its functions."""


def read_recipe(text: str) -> list[Rule]:
    """Return the rules of a recipe: a name, or the path of a file that ends in .json.

    Raises:
        OptionError: Neither a name nor such a path.
        InputError: The file cannot be read or contains no list of rules.
    """
    if text in NAMED:
        return [NAMED[text]]
    if not text.endswith(".json"):
        raise OptionError(f"recipe={text}: allowed is a file that ends in .json, or {', '.join(NAMED)}")
    return parse_recipe(bytes(read_bytes(text)), text)


def parse_recipe(content: bytes, where: str) -> list[Rule]:
    """Return the rules of a recipe file; a regex, operation or algorithm that is missing matches or is the default.

    Raises:
        InputError: The content is no JSON, or no list of rules.
    """
    try:
        entries = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: no JSON: {' '.join(str(error).split())}") from None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{where}: {type(entries).__name__}; a recipe is a list of one rule or more")
    return [_read_rule(entry, f"{where}, rule {number}") for number, entry in enumerate(entries)]


def _read_rule(entry: object, where: str) -> Rule:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: {type(entry).__name__}; allowed is an object of names and values")
    rule: Rule = {"regex": ".*", "operation": ANY, "algorithm_key": MIN_MAX, "op_config": {}, **entry}
    for name in ("regex", "operation", "algorithm_key"):
        if not isinstance(rule[name], str):
            raise InputError(f"{where}: {name} {rule[name]!r}; allowed is a word")
    if not isinstance(rule["op_config"], dict):
        raise InputError(f"{where}: op_config is {type(rule['op_config']).__name__}; allowed is an object")
    if rule["op_config"].get("skip_checks"):
        raise InputError(f"{where}: skip_checks=true; allowed is false: TFLite has no kernels for such layers")
    try:
        re.compile(str(rule["regex"]))
    except re.error as error:
        raise OptionError(f"{where}: '{rule['regex']}' is no regular expression: {error}") from None
    return rule


def adapt_rule(rule: Rule, layer: LayerOptions) -> Rule:
    """Return a rule with the keys `per_channel` and `symmetric` applied."""
    config = dict(cast("Mapping[str, object]", rule.get("op_config", {})))
    for name, value in config.items():
        widths = cast("Mapping[str, object]", value)
        if name == "weight_tensor_config" and not layer.per_channel and widths.get("granularity") == _CHANNELWISE:
            config[name] = {**widths, "granularity": _TENSORWISE}
        if name == "activation_tensor_config" and layer.symmetric:
            config[name] = {**widths, "symmetric": True}
    return {**rule, "op_config": config}


def rule_of_kind(kind: str, weight_bits: int) -> Rule:
    """Return the rule for one of the target's types other than `float`."""
    if kind == "float16":
        return _half_rule()
    return make_rule(weight_bits, {"int8": 8, "int16x8": 16}.get(kind, 0), is_integer=kind != "weights")


def limit_to_node(rule: Rule, operation: str, scope: str) -> Rule:
    """Return a rule for the node of an operator and a scope; no other rule has its regex."""
    return {**rule, "regex": f"(?:^{re.escape(scope)}$)", "operation": operation}


def limit_to_border(operation: str, kind: str) -> Rule:
    """Return the rule for all inputs or outputs of the graph.

    Args:
        operation: "INPUT" or "OUTPUT".
        kind: "float" or "uint8".
    """
    rule = make_rule(8, 8) if kind == "uint8" else LEFT
    if kind == "uint8":
        cast("dict[str, object]", rule["op_config"])["activation_tensor_config"] = _widths(8, False, dtype="UINT")
    return {**rule, "regex": f"(?#{operation})", "operation": operation}
