"""Configuration of Compass, build.cfg, opt.cfg and opt_template.json, as settings of the target, and back.

build.cfg: sections [Common], [Parser], [Optimizer] with the keys of opt.cfg, and [GBuilder] for the closed back end. Of
[Parser] the keys that choose the mode are followed; other keys of these sections are listed as without effect.

opt.cfg: section [Common], lines `key = value`; many values may hold for single layers,
`8 & <[(9,13)]:16> <[Softmax]:10> <{regex}:12>`. Ranges of layers win over types, types over names; of several the
first. They become rules whose pattern begins with `IR `, which hold for layers of the Compass IR, not for operators of
the .tflite. opt_template.json: {name of a layer: {key: value}}, each complete.

What would change the result and is not computed here is refused by name; what says where files are is not read.

Source: Compass Optimizer, config/cfg_fields.py, framework/qgraph.py.
"""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tflq.converters.aipu.options import FROM, GLOBAL_METHODS, INTEGERS, RANGES, STRATEGY
from tflq.converters.precision import GLOBAL_CALIBRATION
from tflq.converters.settings import Settings, SettingsFile, Value
from tflq.errors import FormatError
from tflq.interpreter.kernels.aipu.softmax import ADJUSTMENTS
from tflq.quoting import escape_unprintable

TARGET = "aipu"
_CONFIG = re.compile(r"""^\s*\[(Common|Parser|Optimizer)\]|^\s*"q_bits_activation":""", re.MULTILINE | re.ASCII)
"""A line of opt.cfg or build.cfg, or of opt_template.json."""

_COMMON, _PARSER, _OPTIMIZER, _BUILDER = "Common", "Parser", "Optimizer", "GBuilder"
_MODES = {"force_float_ir": "true", "compat_quantized_model": "false"}
"""Key of [Parser] -> value with which it makes float layers of a quantized file."""

RULE = "IR "
"""In front of the pattern of a rule for layers of the Compass IR: `IR 9-13`, `IR Softmax`, `IR {regex}`."""

_ACTIVATIONS = {
    "per_tensor_symmetric_full_range": "activations=symmetric,activation_range=full",
    "per_tensor_symmetric_restricted_range": "activations=symmetric,activation_range=restricted",
    "per_tensor_asymmetric": "activations=asymmetric,activation_range=full",
}
_WEIGHTS = {
    f"per_{what}_symmetric_{reach}_range": f"weights=per_{what},weight_range={reach}"
    for what in ("tensor", "channel")
    for reach in ("full", "restricted")
}


def _named(choices: Mapping[str, str]) -> Callable[[str], str | None]:
    return lambda value: choices.get(value.lower())


def _whole(key: str) -> Callable[[str], str | None]:
    return lambda value: f"{key}={int(value)}" if re.fullmatch(r"-?\d+", value) else None


def _flag(value: str) -> str | None:
    return f"unify_concat={value.lower()}" if value.lower() in ("true", "false") else None


_SETTINGS: dict[str, Callable[[str], str | None]] = {
    "quantize_method_for_activation": _named(_ACTIVATIONS),
    "quantize_method_for_weight": _named(_WEIGHTS),
    **{
        key: _whole(key)
        for key in (
            *("activation_bits", "weight_bits", "bias_bits", "bias_effective_bits", "lut_items_in_bits"),
            *("multiplier_bits", "remain_shift"),
        )
    },
    "min_compatible_zhouyi_target": lambda value: f"min_compatible_zhouyi_target={value.partition('_')[0].upper()}",
    "unify_scales_for_concat": _flag,
}
_OF_TEMPLATE = {
    "q_mode_activation": "quantize_method_for_activation",
    "q_mode_weight": "quantize_method_for_weight",
    "q_bits_activation": "activation_bits",
    "q_bits_weight": "weight_bits",
    "q_bits_bias": "bias_bits",
    **{key: key for key in ("lut_items_in_bits", "multiplier_bits", "remain_shift", "bias_effective_bits")},
}
_SOFTMAX = {
    "[0.0]": [],
    "[2, 20]": ["softmax=lut"],
    **{f"[1, {q}]": ["softmax=fast_exp", f"softmax_adjust_q={q}"] for q in ADJUSTMENTS},
}
"""How a Softmax is computed; of other layers nothing."""
_STATISTICS = {"running_statistic_momentum": "momentum", "histc_bins": "bins", "calibration_batch_size": "batch_size"}
_STRATEGIES = {"kld": "compass-kld", "percentile": "compass-percentile"}
_UNREAD = frozenset(
    re.findall(
        r"\w+",
        """
graph bin model_name out_ir_name quant_ir_name output_dir qconfig dataset metric data label
data_batch_dim label_batch_dim without_batch_dim dataloader_workers metric_batch_size dump dump_dir
statistic_file save_statistic_info eval_optimized_model eval_original_model similarity_data_num
write_similarity_to_ir record_debug_acc_info perf_mode_for_lib just_for_display
ignore_missing_statistic
""",
    )
)
"""Keys that change no quantized value."""
_USUAL = {
    "skip_optimization": "false",
    "approx_params": "[0.0]",
    "calibration_strategy_for_weight": "extrema",
    "q_strategy_weight": "extrema",
    "calibration_shuffe": "false",
    GLOBAL_CALIBRATION: GLOBAL_METHODS[0],
    "quant_type": "disable",
    "unify_shifts_for_aiff": "true",
    "force_dtype_int": "false",
    "force_shift_positive": "false",
    "bias_effective_bits_auto_adaption": "false",
    "set_qinvariant_for_start_nodes": "",
    "fake_quant_scopes_for_debug": "",
    "fake_quant_operators_for_debug": "",
    "resize_degrade_to_nearest": "false",
    "unify_scales_for_multi_inputs_operators": "",
    "with_winograd": "false",
    "mixed_precision_auto_search": "",
    "trigger_float_op": "disable",
    "trim_infinity_before_statistic": "",
    "enable_pass_merge_matmul_mul": "true",
}
_METHODS = {
    "gptq_zy": "for convolutions its order of the Hessian is not that of the weights; `tflq recover` does without",
    "smooth_quant_zy": "the tool's file has a scale for each channel of activations and float32 biases then",
    "easy_quant": "the tool itself stops in it; `--strategy mse` searches ranges",
    "awq_zy": "no run of the tool could be compared with",
    "svd_quant": "no run of the tool could be compared with",
    "mvn_correction": "no run of the tool could be compared with",
}


def find_config(text: str, where: str) -> SettingsFile | None:
    """Return the settings in opt.cfg or opt_template.json; None if the text is neither. Args, Raises: `read_config`."""
    return read_config(text, where) if _CONFIG.search(text) else None


def read_config(text: str, where: str) -> SettingsFile:
    """Read opt.cfg or opt_template.json.

    Args:
        text: its content.
        where: path of the file, for messages; samples that it names lie beside it.

    Raises:
        FormatError: it is none, or has a key or value that is not followed here.
    """
    if text.lstrip().startswith("{"):
        return _read_template(text, where)
    pairs, assignments, ignored = _read_sections(text, where)
    rules: list[tuple[int, str]] = []
    calibration: dict[str, Value] = {"strategy": "mean", "batch_size": 1}
    for key, value in pairs.items():
        if key == GLOBAL_CALIBRATION:
            assignments.append(f"{key}={_method(value, where)}")
        elif key in _SETTINGS:
            usual, *single = _values(value)
            assignments += _assigned(key, usual[1], where).split(",")
            rules += [(rank, f"{RULE}{pattern}:{_assigned(key, v, where)}") for rank, (pattern, v) in enumerate(single)]
        elif key == _ADAPTED:
            ignored += [f"{key} = {value}"] if value.lower() != "false" else []
        elif key == _STRATEGY:
            usual, *single = _values(value)
            calibration["strategy"] = _strategy(key, usual[1], where)
            rules += [
                (rank, f"{RULE}{pattern}:{STRATEGY}={_strategy(key, one, where)}")
                for rank, (pattern, one) in enumerate(single)
            ]
        elif not _of_calibration(key, value, where, calibration):
            _refuse(key, value, where)
    if calibration["strategy"] == "in_ir":
        calibration = {}  # the float IR states its ranges
    ordered = sorted(rules, key=lambda rule: (_RANKS[_kind(rule[1])], -rule[0]))
    return SettingsFile(TARGET, tuple(assignments), tuple(rule for _, rule in ordered), calibration, tuple(ignored))


def _read_sections(text: str, where: str) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the Optimizer's keys, assignments of the Parser's mode, and lines of other sections.

    Raises:
        FormatError: a text without sections, or without [Common] and [Optimizer].
    """
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise FormatError(
            f"{where}: is no opt.cfg: {escape_unprintable(str(error))}; it needs the section [Common]"
        ) from None
    sections = {name: dict(parser[name]) for name in parser.sections()}
    if not {_PARSER, _OPTIMIZER, _BUILDER}.intersection(sections):
        if _COMMON not in sections:
            raise FormatError(f"{where}: is no opt.cfg: it needs the section [Common]")
        return sections[_COMMON], [], []
    assignments, ignored = list[str](), list[str]()
    for name, pairs in sections.items():
        for key, value in pairs.items() if name != _OPTIMIZER else ():
            if name == _PARSER and key in _MODES:
                source = RANGES if value.lower() == _MODES[key] else INTEGERS
                assignments.append(f"{FROM}={source}")
            elif name != _BUILDER:
                ignored.append(f"[{name}] {key} = {escape_unprintable(value)}")
    # force_float_ir = true wins over the default of the other key
    assignments = [f"{FROM}={RANGES}"] if f"{FROM}={RANGES}" in assignments else assignments[:1]
    return sections.get(_OPTIMIZER, {}), assignments, ignored


_STRATEGY = "calibration_strategy_for_activation"
_ADAPTED = "cast_dtypes_for_lib"
"""Key that adds Casts for the closed library: in one of four networks of the zoo, no integer of the others changed."""


def _strategy(key: str, value: str, where: str) -> str:
    """Return a strategy of Compass by its name here.

    Raises:
        FormatError: an unknown strategy.
    """
    form = re.fullmatch(r"(\d*\.?\d*)(in_ir|extrema|mean|std|kld|aciq_laplace|aciq_gauss|percentile)", value.lower())
    if form is None:
        raise FormatError(
            f"{where}: {key} = {escape_unprintable(value)}: allowed is one strategy of Compass, and others for single "
            "layers"
        )
    return form.group(1) + _STRATEGIES.get(form.group(2), form.group(2))


def _method(value: str, where: str) -> str:
    """Return the method of global_calibration; what stands in its brackets is of the tool's training and not followed.

    Raises:
        FormatError: several methods, or one that is not computed here.
    """
    names = re.findall(r"[a-z_]{3,}", re.sub(r"\[[^\]]*\]", "", value.lower()))
    refused = [f"{name}: {_METHODS.get(name, 'unknown')}" for name in names if name not in GLOBAL_METHODS]
    if refused or len(names) > 1:
        reason = "; ".join(refused) or "one method at a time"
        raise FormatError(
            f"{where}: {GLOBAL_CALIBRATION} = {escape_unprintable(value)}: not computed here: {reason}; allowed is "
            f"{', '.join(GLOBAL_METHODS)}"
        )
    return names[0] if names else GLOBAL_METHODS[0]


_RANKS = {"name": 0, "type": 1, "range": 2}


def _kind(rule: str) -> str:
    pattern = rule.removeprefix(RULE)
    return "name" if pattern.startswith("{") else "range" if pattern[0].isdecimal() else "type"


def _values(value: str) -> Iterator[tuple[str, str]]:
    """Yield ("", the usual value) and then pattern and value of single layers."""
    usual, _, rest = value.partition("&")
    yield "", usual.strip()
    for names, one in re.findall(r"<\s*(\[.*?\]|\{.*?\})\s*:\s*([^<>]*?)\s*>", rest):
        if names.startswith("{"):
            yield names.replace(":", r"\x3a"), one
            continue
        ranges = re.findall(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)", names)
        for first, last in ranges:
            yield f"{first}-{last}", one
        for name in [] if ranges else re.findall(r"\w+", names):
            yield name, one


def _assigned(key: str, value: str, where: str) -> str:
    found = _SETTINGS[key](value)
    if found is None:
        raise FormatError(f"{where}: {key} = {escape_unprintable(value)}: {_allowed(key)}")
    return found


def _allowed(key: str) -> str:
    choices = {"quantize_method_for_activation": _ACTIVATIONS, "quantize_method_for_weight": _WEIGHTS}.get(key)
    return f"allowed is {', '.join(choices)}" if choices else "allowed is a whole number, or true or false"


def _of_calibration(key: str, value: str, where: str, found: dict[str, Value]) -> bool:
    """Take what says how ranges are calibrated; False where the key does not."""
    if key == "calibration_data":
        if value:
            found["samples"] = str(Path(where).parent / value)
        return True
    if key not in _STATISTICS:
        return False
    try:
        found[_STATISTICS[key]] = float(value) if key == "running_statistic_momentum" else int(value)
    except ValueError:
        raise FormatError(f"{where}: {key} = {escape_unprintable(value)}: allowed is a number for all layers") from None
    return True


def _refuse(key: str, value: str, where: str) -> None:
    """Refuse a key that would change the result.

    Raises:
        FormatError: it is not known, or has another value than the tool's default.
    """
    if key in _UNREAD or value.strip().lower() == _USUAL.get(key):
        return
    usual = f"; allowed is {_USUAL[key] or 'nothing'}" if key in _USUAL else ": leave it away"
    raise FormatError(f"{where}: {key} = {escape_unprintable(value)}: is not followed here{usual}")


def _read_template(text: str, where: str) -> SettingsFile:
    """Read opt_template.json: every layer has its own settings."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: is no template: {escape_unprintable(str(error))}") from None
    if not isinstance(content, dict) or not all(isinstance(layer, dict) for layer in content.values()):
        raise FormatError(f"{where}: is no template: allowed is an object of layers")
    rules = []
    for name, layer in content.items():
        pairs = []
        for key, value in layer.items():
            if key == "extra_params" and str(value) in _SOFTMAX:
                pairs += _SOFTMAX[str(value)]
            elif key in _OF_TEMPLATE:
                pairs.append(_assigned(_OF_TEMPLATE[key], str(value), where))
            elif key not in ("q_strategy_activation", "running_statistic_momentum", "histc_bins"):
                _refuse(key, str(value), f"{where}: layer '{escape_unprintable(name)}'")
        pattern = re.escape(name).replace(":", r"\x3a")
        rules.append(f"{RULE}{{{pattern}$}}:{','.join(pairs)}")
    return SettingsFile(TARGET, (), tuple(rules))


def build_config_text(settings: Settings, name: str) -> str:
    """Return build.cfg for the emitted files: both modes that tflq models, and the closed back end's section.

    The Parser's section is for a quantized .tflite; for a float one it has no effect. The Optimizer's section starts
    from the float IR in the same folder.

    Args:
        settings: complete.
        name: of the files, without ending.

    Raises:
        FormatError: as `config_text`.
    """
    optimizer = config_text(settings, name).partition("\n")[2]
    target = str(settings.values["min_compatible_zhouyi_target"])
    return (
        "# Parser: float layers of a quantized file, as tflq models it; its default hands on TFLite's integers.\n"
        "[Common]\nmode = build\n\n"
        f"[Parser]\nmodel_type = tflite\nmodel_name = {name}\nforce_float_ir = true\noutput_dir = .\n\n"
        f"[Optimizer]\n{optimizer}\n"
        f"# Closed back end: the target's full name has its number of cores, such as {target}_1204.\n"
        f"[GBuilder]\ntarget = {target}\noutputs = {name}.aipu.bin\n"
    )


def config_text(settings: Settings, name: str) -> str:
    """Return opt.cfg for the float IR that the target writes, with whose ranges Compass makes the same quantized one.

    Args:
        settings: complete.
        name: of the files, without ending.

    Raises:
        FormatError: settings that Compass does not have: rules for operators of a .tflite, the variant, float layers.
    """
    values = {key: str(value) for key, value in settings.values.items()}
    if settings.rules or values["variant"] != "compass" or settings.values["float"] or settings.values["cut_inputs"]:
        raise FormatError(
            "opt.cfg has no layers of a .tflite, no variant, no float layers and no cut_inputs: leave them away"
        )
    lines = {"graph": f"{name}.txt", "bin": f"{name}.bin", "model_name": name}
    for key, table in (("quantize_method_for_activation", _ACTIVATIONS), ("quantize_method_for_weight", _WEIGHTS)):
        lines[key] = next(k for k, v in table.items() if all(values[a] == b for a, b in _pairs(v)))
    wide = int(values["activation_bits"]) >= 16
    usual = {"bias_bits": ("0", "48" if wide else "32"), "multiplier_bits": ("0", ""), "remain_shift": ("-1", "")}
    for key in ("activation_bits", "weight_bits", "lut_items_in_bits", "bias_bits", "multiplier_bits", "remain_shift"):
        unset, default = usual.get(key, ("", ""))
        found = default if values[key] == unset else values[key]
        lines |= {key: found} if found else {}
    if values["bias_effective_bits"] != "-1":
        lines["bias_effective_bits"] = (
            lines["bias_bits"] if values["bias_effective_bits"] == "0" else values["bias_effective_bits"]
        )
    lines["min_compatible_zhouyi_target"] = values["min_compatible_zhouyi_target"]
    lines["unify_scales_for_concat"] = values["unify_concat"].lower()
    lines |= {"calibration_strategy_for_activation": "in_ir", "calibration_batch_size": "1", "output_dir": "."}
    return "[Common]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())


def _pairs(assignments: str) -> Iterator[tuple[str, str]]:
    for pair in assignments.split(","):
        key, _, value = pair.partition("=")
        yield key, value
