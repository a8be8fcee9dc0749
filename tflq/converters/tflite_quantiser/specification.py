"""The target's facts as data."""

from __future__ import annotations

from tflq.converters.tflite_quantiser.rules import INT8, INT16, INTEGER_KINDS, RULES

SPECIFICATION: dict[str, object] = {
    "activations": {INT8: "int8, any zero point", INT16: "int16, zero point 0"},
    "weights": "int8, -127..127, zero point 0, a scale for each output channel",
    "bias": {INT8: "int32", INT16: "int64"},
    "operators": {
        kind: {
            operator: {
                "same_scale": rule.same,
                "fixed_output": rule.fixed.get(kind),
                "channel_axis": rule.filter.axis if rule.filter else None,
            }
            for operator, rule in sorted(RULES.items())
            if kind in rule.kinds
        }
        for kind in INTEGER_KINDS
    },
}
