"""The keys of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.aipu.faults import PARSER_FAULTS
from tflq.converters.precision import GLOBAL_CALIBRATION, Promotion
from tflq.converters.settings import Setting, Settings, Value
from tflq.errors import OptionError
from tflq.graph import Graph
from tflq.interpreter.kernels.aipu.float_sums import AMD, FLOAT_LIBRARY, FLOAT_SUMS, INTEL
from tflq.interpreter.kernels.aipu.gru import SCALES, WEIGHT_SCALES
from tflq.interpreter.kernels.aipu.imported import MULTIPLIER_BITS
from tflq.interpreter.kernels.aipu.linear import REMAIN_SHIFT
from tflq.interpreter.kernels.aipu.norms import NORMALISED_SCALE
from tflq.interpreter.kernels.aipu.softmax import ADJUST, ADJUSTMENTS, METHOD

SYMMETRIC, ASYMMETRIC = "symmetric", "asymmetric"
PER_TENSOR, PER_CHANNEL = "per_tensor", "per_channel"
FULL, RESTRICTED = "full", "restricted"
COMPASS, WHITEPAPER = "compass", "whitepaper"
AUTO, LUT, FAST_EXP = "auto", "lut", "fast_exp"

FROM, RANGES, SAMPLES, INTEGERS = "from", "ranges", "samples", "integers"
STRATEGY = "strategy"

GLOBAL_METHODS = ("none", "adaround", "adaquant_zy")

_LEVELS = {**dict.fromkeys(("Z1", "Z2", "Z3", "X1"), 0), "X2": 1, **dict.fromkeys(("X3", "X3P", "X3S"), 2)}
"""Target -> which defaults it has. Source: Compass Optimizer, config/parser.py."""

_KEPT_BITS = 32

KNOWN = (
    Setting("activations", SYMMETRIC, "zero points on activations or none", (SYMMETRIC, ASYMMETRIC)),
    Setting("activation_range", FULL, "restricted leaves out the lowest quantized value", (FULL, RESTRICTED)),
    Setting("activation_bits", 8, "width of a layer's output; 16 is always symmetric", (8, 12, 16)),
    Setting("weights", PER_TENSOR, "one scale a layer or one each channel", (PER_TENSOR, PER_CHANNEL)),
    Setting("weight_range", RESTRICTED, "restricted leaves out the lowest quantized value", (FULL, RESTRICTED)),
    Setting("weight_bits", 8, "width of weights", minimum=2, maximum=16),
    Setting("bias_bits", 0, "width of biases; 0 for 32, or 48 where activations have 16 bits", (0, 16, 32, 48)),
    Setting("float", False, "run the layer in floating point, to see whether it loses accuracy; not for files"),
    Setting("variant", COMPASS, "compass, or the whitepaper's own formulas (not for files)", (COMPASS, WHITEPAPER)),
    Setting("unify_concat", False, "give the branches of a Concat the scale of its output: quantized values only move"),
    Setting(
        "multiplier_bits", 0, "width of M of sums, products, Concat, LeakyRelu; 0: the output's", (0, *range(2, 16))
    ),
    Setting(
        "bias_effective_bits",
        -1,
        "bits of a bias that the hardware keeps; 0 for all, -1 as Compass has it for the target",
        (-1, 0, 8, 16, 24, 32, 48),
    ),
    Setting("min_compatible_zhouyi_target", "X2", "what Compass's defaults are for", tuple(_LEVELS)),
    Setting("cut_inputs", False, "ranges of what SIGMOID reads end at 6, of TANH at 3, as the whitepaper hints"),
    Setting("remain_shift", -1, "bits of N behind the bias, for sums of 32 bits; -1 for all", minimum=-1, maximum=63),
    Setting(FLOAT_SUMS, False, "MatMul and ConvTranspose add in float32, as Compass's forward does; false: exactly"),
    Setting(FLOAT_LIBRARY, INTEL, "whose processor Compass runs on, for float32 sums and exponentials", (INTEL, AMD)),
    Setting(
        PARSER_FAULTS,
        False,
        "two outputs of a Split are one, as the Compass Parser has it where it is wrong",
        per_layer=False,
    ),
    Setting(
        GLOBAL_CALIBRATION,
        "none",
        "recovery by the tool's objective: `convert` does it, and `recover`, `bench` and `search` with --recover",
        GLOBAL_METHODS,
        per_layer=False,
    ),
    Setting(
        FROM,
        RANGES,
        "quantized file: ranges of the file (Parser force_float_ir, Optimizer in_ir), of the samples, or its integers",
        (RANGES, SAMPLES, INTEGERS),
        per_layer=False,
    ),
    Setting(STRATEGY, "", "calibration strategy of the layer's output; empty for that of --strategy"),
    Setting("softmax", AUTO, "auto: fast_exp but where the network ends or ranks", (AUTO, LUT, FAST_EXP)),
    Setting("softmax_adjust_q", 1, "fraction bits of fast_exp", ADJUSTMENTS),
    Setting("lut_items_in_bits", 8, "log2 of the most entries of a table", minimum=8, maximum=10),
)

TABLE_BITS = "lut_items_in_bits"
CHANNEL_WISE = "channel_wise"
"""Requested option of linear layers with one scale each channel: their multiplier is wide, even that of one channel."""
REQUESTED = (
    *(TABLE_BITS, REMAIN_SHIFT, MULTIPLIER_BITS, METHOD, ADJUST, NORMALISED_SCALE, FLOAT_SUMS, FLOAT_LIBRARY),
    *(CHANNEL_WISE, SCALES, WEIGHT_SCALES),
)
"""What a node is told beside the keys of its layer: requested options, which no file has among the attributes."""

PROMOTIONS = (
    Promotion("16 bits", "activation_bits=16,weight_bits=16,bias_bits=48,lut_items_in_bits=10"),
    Promotion("floating point", "float=true"),
)
"""What a backward search tries. Source: Compass Optimizer, mixed_precision_auto_search."""


@dataclass(frozen=True)
class LayerOptions:
    """The requested options of one layer.

    Attributes:
        is_symmetric: whether its output has no zero point.
        restricted: whether its output leaves out the lowest quantized value.
        activation_bits: width of its output.
        per_channel: whether its weights have one scale each channel.
        restricted_weights: whether its weights leave out the lowest quantized value.
        weight_bits: width of its weights.
        bias_bits: width of its biases.
        by_whitepaper: whether the whitepaper's own formulas run.
        unify_concat: whether the branches of a Concat take its scale.
        multiplier_bits: width of its multipliers; 0 for that of its output.
        bias_effective_bits: bits of its biases that count; 0 for all.
        remain_shift: of its sums; None where they keep all bits.
        softmax: auto, lut or fast_exp.
        adjust_q: fraction bits of fast_exp.
        table_bits: log2 of the most entries of its table.
        floating: whether it runs in floating point.
        cut_inputs: whether a SIGMOID or TANH reads no more than the part where it is not flat.
        float_sums: whether MatMul and ConvTranspose add in float32.
        float_library: on whose processors the Optimizer would run.
        strategy: Calibration strategy of its output; "" for that of the calibration.
    """

    is_symmetric: bool
    restricted: bool
    activation_bits: int
    per_channel: bool
    restricted_weights: bool
    weight_bits: int
    bias_bits: int
    by_whitepaper: bool
    unify_concat: bool
    multiplier_bits: int
    bias_effective_bits: int
    remain_shift: int | None
    softmax: str
    adjust_q: int
    table_bits: int
    floating: bool
    cut_inputs: bool
    float_sums: bool
    float_library: str
    strategy: str


def options_of(values: dict[str, Value]) -> LayerOptions:
    """Return the options that complete values stand for."""
    bits, level = int(values["activation_bits"]), _LEVELS[str(values["min_compatible_zhouyi_target"])]
    kept = int(values["bias_effective_bits"])
    softmax = str(values["softmax"])
    return LayerOptions(
        values["activations"] == SYMMETRIC,
        values["activation_range"] == RESTRICTED or (bits >= 16 and values["activations"] == ASYMMETRIC),
        bits,
        values["weights"] == PER_CHANNEL,
        values["weight_range"] == RESTRICTED,
        int(values["weight_bits"]),
        int(values["bias_bits"]) or (48 if bits >= 16 else 32),
        values["variant"] == WHITEPAPER,
        bool(values["unify_concat"]),
        int(values["multiplier_bits"]),
        kept if kept >= 0 else (_KEPT_BITS if level else 0),
        remain if (remain := int(values["remain_shift"])) >= 0 else None,
        LUT if softmax == AUTO and level > 1 else softmax,
        int(values["softmax_adjust_q"]),
        int(values["lut_items_in_bits"]),
        bool(values["float"]),
        bool(values["cut_inputs"]),
        bool(values[FLOAT_SUMS]),
        str(values[FLOAT_LIBRARY]),
        str(values[STRATEGY]),
    )


def refuse_settings(settings: Settings) -> None:
    """Refuse what a graph that is quantized already could not follow.

    Raises:
        OptionError: a value that is not the default, or a layer's own.
    """
    changed = [s.key for s in KNOWN if settings.values[s.key] != s.default]
    changed += [key for rule in settings.rules for key in rule.values]
    if changed:
        raise OptionError(f"the network is quantized already: leave {', '.join(changed)} away, or give its float IR")


def layer_values(graph: Graph, settings: Settings) -> dict[str, Mapping[str, Value]]:
    """Return the complete values of each node by its name.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    return {node.name: values for node, values in zip(graph.nodes, settings.of_layers(graph), strict=True)}
