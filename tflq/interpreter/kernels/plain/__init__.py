"""Operators on plain numbers and quantized values as they are: no scale enters, so every arithmetic has the same."""

from __future__ import annotations

from tflq.interpreter.registry import places

PLAIN = places(
    __name__,
    "local_response_normalization rfft2d",
    binary="pow",
    cast="bitcast cast",
    sums="add_n cumsum",
    unary="ceil complex_abs cos floor imag logical_not neg real round sign sin square zeros_like",
    pairs="""
    atan2 bitwise_xor floor_div floor_mod logical_and logical_or maximum minimum right_shift
    stablehlo_add stablehlo_and stablehlo_maximum stablehlo_minimum stablehlo_multiply stablehlo_shift_left
    """,
    levels="bucketize fake_quant",
    select="select select_v2",
    arg_extreme="arg_max arg_min",
    reduction="reduce_all reduce_any reduce_max reduce_min",
    windows="reduce_window stablehlo_reduce_window",
    random_numbers="multinomial random_standard_normal random_uniform stablehlo_rng_bit_generator",
)
