"""The keys of the target beside those of the Compass Optimizer: defaults, and the borders of what is allowed."""

from __future__ import annotations

import pytest

from tflq.converters.aipu import AIPU
from tflq.converters.aipu.options import options_of
from tflq.converters.settings import parse_settings
from tflq.errors import OptionError

# Source of the defaults: Compass Optimizer, config/cfg_fields.py, and parser.py for those that follow from the target.
DEFAULTS = {
    "is_symmetric": True,
    "restricted": False,
    "activation_bits": 8,
    "per_channel": False,
    "restricted_weights": True,
    "weight_bits": 8,
    "bias_bits": 32,
    "by_whitepaper": False,
    "unify_concat": False,
    "multiplier_bits": 0,
    "bias_effective_bits": 32,
    "remain_shift": None,
    "softmax": "auto",
    "adjust_q": 1,
    "table_bits": 8,
    "floating": False,
    "cut_inputs": False,
    "float_sums": False,
    "float_library": "intel",
    "strategy": "",
}
# Key, what is allowed at its borders, what lies beside them.
BORDERS = (
    ("activation_bits", (8, 12, 16), (7, 9, 11, 13, 17)),
    ("weight_bits", (2, 16), (1, 17)),
    ("bias_bits", (0, 16, 32, 48), (1, 15, 31, 49)),
    ("multiplier_bits", (0, 2, 15), (-1, 1, 16)),
    ("bias_effective_bits", (-1, 0, 8, 16, 24, 32, 48), (-2, 1, 7, 40, 49)),
    ("remain_shift", (-1, 0, 63), (-2, 64)),
    ("softmax_adjust_q", (0, 1, 8, 15), (-1, 2, 7, 16)),
    ("lut_items_in_bits", (8, 9, 10), (7, 11)),
)


def _options(*texts: str) -> dict[str, object]:
    return vars(options_of(dict(parse_settings(AIPU.settings, texts).values)))


def test_defaults_are_the_optimizers() -> None:
    assert _options() == DEFAULTS


@pytest.mark.parametrize(("key", "allowed", "refused"), BORDERS)
def test_borders(key: str, allowed: tuple[int, ...], refused: tuple[int, ...]) -> None:
    for value in allowed:
        assert parse_settings(AIPU.settings, [f"{key}={value}"]).values[key] == value
    for value in refused:
        with pytest.raises(OptionError, match=rf"{key}={value}"):
            parse_settings(AIPU.settings, [f"{key}={value}"])


@pytest.mark.parametrize(
    ("texts", "changed"),
    [
        (("activation_bits=16",), {"activation_bits": 16, "bias_bits": 48}),
        (("activation_bits=12",), {"activation_bits": 12}),
        (("activation_bits=16", "bias_bits=32"), {"activation_bits": 16}),
        (("activations=asymmetric",), {"is_symmetric": False}),
        (
            ("activations=asymmetric", "activation_bits=16"),
            {"is_symmetric": False, "restricted": True, "activation_bits": 16, "bias_bits": 48},
        ),
        (("activation_range=restricted",), {"restricted": True}),
        (("weights=per_channel", "weight_range=full"), {"per_channel": True, "restricted_weights": False}),
        (("bias_effective_bits=0",), {"bias_effective_bits": 0}),
        (("bias_effective_bits=8",), {"bias_effective_bits": 8}),
        (("remain_shift=0",), {"remain_shift": 0}),
        *((("min_compatible_zhouyi_target=" + t,), {"bias_effective_bits": 0}) for t in ("Z1", "Z2", "Z3", "X1")),
        *((("min_compatible_zhouyi_target=" + t,), {"softmax": "lut"}) for t in ("X3", "X3P", "X3S")),
        (("min_compatible_zhouyi_target=X3", "softmax=fast_exp"), {"softmax": "fast_exp"}),
        (("min_compatible_zhouyi_target=Z3", "bias_effective_bits=16"), {"bias_effective_bits": 16}),
        (("variant=whitepaper", "unify_concat=true", "cut_inputs=true"), {
            "by_whitepaper": True, "unify_concat": True, "cut_inputs": True}),
        (("float=true", "float_sums=true", "float_library=amd"), {
            "floating": True, "float_sums": True, "float_library": "amd"}),
    ],
)  # fmt: skip
def test_what_a_setting_changes(texts: tuple[str, ...], changed: dict[str, object]) -> None:
    assert _options(*texts) == {**DEFAULTS, **changed}
