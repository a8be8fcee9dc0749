"""Recipes by name, and recipe files: JSON as ai-edge-quantizer saves it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from tflq.converters.tflite_quantiser.recipes.policy import ALGORITHMS, OPERATIONS, why_not
from tflq.converters.tflite_quantiser.recipes.rules import (
    ANY,
    BLOCKS,
    CHANNELWISE,
    FLOAT_CASTING,
    GPTQ,
    HADAMARD,
    MIN_MAX,
    MSE,
    NO_QUANTIZE,
    OCTAV,
    OSCAR,
    TENSORWISE,
    Config,
    Rule,
    Widths,
    in_order,
)
from tflq.errors import InputError, OptionError
from tflq.files import read_bytes


def dynamic(bits: int, granularity: str = CHANNELWISE) -> Config:
    """Return integer weights; the kernel quantises activations when it runs."""
    return Config(None, Widths(bits, granularity=granularity), is_integer=True)


def weight_only(bits: int) -> Config:
    """Return integer weights that a DEQUANTIZE makes float32."""
    return Config(None, Widths(bits, granularity=CHANNELWISE))


def static(bits: int, activation_bits: int) -> Config:
    """Return integer weights and activations: of 8 bits with a zero point, of 16 without."""
    return Config(Widths(activation_bits, activation_bits == 16), Widths(bits, granularity=CHANNELWISE), True)


def _named() -> dict[str, Rule]:
    found: dict[str, tuple[Config, str]] = {}
    for bits in (8, 4):
        found[f"dynamic_wi{bits}_afp32"] = dynamic(bits), MIN_MAX
        found[f"weight_only_wi{bits}_afp32"] = weight_only(bits), MIN_MAX
        for activation_bits in (8, 16):
            found[f"static_wi{bits}_ai{activation_bits}"] = static(bits, activation_bits), MIN_MAX
    for bits in (8, 4, 2):
        found[f"dynamic_wi{bits}c_afp32"] = dynamic(bits), MIN_MAX
        found[f"dynamic_wi{bits}c_hr_afp32"] = dynamic(bits), HADAMARD
    for bits in (4, 2):
        for name, size in BLOCKS.items():
            found[f"dynamic_wi{bits}b{size}_afp32"] = dynamic(bits, name), MIN_MAX
    for bits in (8, 4):
        for algorithm in (MSE, OCTAV, GPTQ, OSCAR):
            found[f"dynamic_wi{bits}_{algorithm.lower()}_afp32"] = dynamic(bits), algorithm
    found["dynamic_legacy_wi8_afp32"] = replace(dynamic(8), least_elements=1024), MIN_MAX
    found["float16"] = Config(None, Widths(16, granularity=TENSORWISE, dtype="FLOAT")), FLOAT_CASTING
    return {name: Rule(".*", ANY, algorithm, config) for name, (config, algorithm) in sorted(found.items())}


NAMED = _named()
"""Recipes by ai-edge-quantizer's names, and by names of the same form where its functions take the algorithm or the
granularity as an argument."""


def recipe_of(text: str) -> list[Rule]:
    """Return the ordered rules of a recipe: a name, or the path of a file that ends in .json.

    Raises:
        OptionError: neither, or rules that contradict what TFLite runs.
        InputError: the file cannot be read or is no recipe: which entry, what was found, what is allowed.
    """
    if text in NAMED:
        return [NAMED[text]]
    if not text.endswith(".json"):
        raise OptionError(f"recipe={text}: allowed is a file that ends in .json, or {', '.join(NAMED)}")
    return parse_recipe(bytes(read_bytes(text)), text)


def parse_recipe(content: bytes, where: str) -> list[Rule]:
    """Return the ordered rules of a recipe file.

    Raises:
        InputError: no JSON, or no list of rules.
        OptionError: a rule for one operator that TFLite has no kernel for.
    """
    try:
        entries = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{where}: no JSON: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{where}: found {type(entries).__name__}; a recipe is a list of one rule or more")
    rules = [_rule(entry, f"{where}, rule {number}") for number, entry in enumerate(entries)]
    for number, rule in enumerate(rules):
        if rule.operation != ANY and rule.algorithm != NO_QUANTIZE:
            reason = why_not(rule.algorithm, rule.operation, rule.config)
            if reason:
                raise OptionError(f"{where}, rule {number}: {reason}; take the rule out, or name '*'")
    return in_order(rules)


def _rule(entry: object, where: str) -> Rule:
    fields = _table(entry, where)
    regex = _word(fields, "regex", ".*", None, where)
    operation = _word(fields, "operation", ANY, (ANY, *sorted(OPERATIONS)), where)
    algorithm = _word(fields, "algorithm_key", MIN_MAX, (NO_QUANTIZE, *ALGORITHMS), where)
    if algorithm == NO_QUANTIZE:
        return Rule(regex, operation, algorithm)
    config = _table(fields.get("op_config", {}), f"{where}, op_config")
    if config.get("skip_checks"):
        raise InputError(
            f"{where}: found skip_checks=true; allowed is false: TFLite has no kernels for what it lets by"
        )
    precision = _word(config, "compute_precision", "FLOAT", ("INTEGER", "FLOAT"), where)
    if bool(config.get("explicit_dequantize", False)) == (precision == "INTEGER"):
        raise InputError(f"{where}: explicit_dequantize must be true with FLOAT and false with INTEGER precision")
    least = _whole(config, "min_weight_elements", 0, where)
    activations, weights = (
        _widths(config.get(f"{name}_tensor_config"), f"{where}, {name}") for name in ("activation", "weight")
    )
    return Rule(regex, operation, algorithm, Config(activations, weights, precision == "INTEGER", least))


def _widths(entry: object, where: str) -> Widths | None:
    if entry is None:
        return None
    fields = _table(entry, where)
    granularity = _word(fields, "granularity", TENSORWISE, (TENSORWISE, CHANNELWISE, *BLOCKS), where)
    size = _whole(fields, "block_size", 0, where)
    if size:
        if size not in BLOCKS.values():
            raise InputError(f"{where}: found block_size {size}; allowed are {', '.join(map(str, BLOCKS.values()))}")
        granularity = f"BLOCKWISE_{size}"
    dtype = _word(fields, "dtype", "INT", ("INT", "UINT", "FLOAT"), where)
    params = _table(fields.get("algorithm_params", {}), f"{where}, algorithm_params")
    most = _whole({**params, **fields}, "max_hadamard_size", 0, where)
    bits = _whole(fields, "num_bits", 8, where)
    return Widths(bits, bool(fields.get("symmetric", True)), granularity, dtype, most)


def _table(entry: object, where: str) -> Mapping[str, object]:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: found {type(entry).__name__}; allowed is an object of names and values")
    return cast("Mapping[str, object]", entry)


def _word(fields: Mapping[str, object], name: str, default: str, allowed: tuple[str, ...] | None, where: str) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or (allowed is not None and value not in allowed):
        raise InputError(f"{where}: found {name} {value!r}; allowed is {', '.join(allowed or ('a word',))}")
    return value


def _whole(fields: Mapping[str, object], name: str, default: int, where: str) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError(f"{where}: found {name} {value!r}; allowed is a whole number from 0")
    return value
