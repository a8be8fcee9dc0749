"""Params of two nodes are compared where both follow the same rule."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.diagnosis.compare.params import integer_differences


@dataclass(frozen=True)
class Halving:
    shift: int


@dataclass(frozen=True)
class Dividing:
    divisor: int


@dataclass(frozen=True)
class PoolParams:
    rule: Halving | Dividing
    zero_point: int


def test_a_rule_of_the_same_kind_is_compared_by_its_fields() -> None:
    (found,) = integer_differences(PoolParams(Halving(1), 3), PoolParams(Halving(2), 3))
    assert found.words == "shift is 1, reference 2"


def test_kernels_of_several_arithmetics_hold_rules_that_cannot_be_compared() -> None:
    assert integer_differences(PoolParams(Halving(1), 3), PoolParams(Dividing(2), 4)) == ()
    assert integer_differences(None, PoolParams(Halving(1), 3)) == ()
