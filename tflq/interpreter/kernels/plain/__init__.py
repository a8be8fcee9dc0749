"""Operators on plain numbers and raw codes: no scale enters, so they are the same in every arithmetic."""

from __future__ import annotations

from tflq.interpreter.registry import places

_ALONE = """
    add_n arg_max arg_min atan2 bitcast bitwise_xor bucketize cast ceil complex_abs cos cumsum fake_quant
    floor floor_div floor_mod imag local_response_normalization logical_and logical_not logical_or maximum
    minimum multinomial neg pow random_standard_normal random_uniform real reduce_all reduce_any reduce_max
    reduce_min reduce_window rfft2d right_shift round select select_v2 sign sin square stablehlo_add
    stablehlo_and stablehlo_maximum stablehlo_minimum stablehlo_multiply stablehlo_reduce_window
    stablehlo_rng_bit_generator stablehlo_shift_left zeros_like
"""

PLAIN = places(__name__, _ALONE)
