"""Ranges that neighbors share, step by step as docs/rules/tpu_mlir.md#ranges-that-are-unified-first has them, on small
graphs with drawn-up tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, IMAGE
from tflq.converters.tpu_mlir.passes.unify import LEAST_MINIMUM, spans_of
from tflq.converters.tpu_mlir.tables import CalibrationLine
from tflq.graph import Array, DType, GraphBuilder

Limits = tuple[float, float]
NUMBER = np.array(2, np.float32)
CHANNELS, FULL = np.float32([1, 2]), np.arange(1, 5, dtype=np.float32).reshape(4, 1)
AREA = np.array([1, 2], np.int32)
TENTH = -float(np.float32(0.3))
"""f32(-0.1 max) of a maximum of 3."""


class Table:
    """A graph whose tensors are images, each with a line of a calibration table."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("table")
        self.lines: dict[int, CalibrationLine] = {}

    def _lined(self, t: int, limits: Limits | None, threshold: float | None = None) -> int:
        if limits is not None:
            reach = max(map(abs, limits)) if threshold is None else threshold
            self.lines[t] = CalibrationLine(str(t), reach, *limits)
        return t

    def input(self, limits: Limits, threshold: float | None = None, shape: tuple[int, ...] = IMAGE) -> int:
        return self._lined(self.builder.input(f"x{len(self.lines)}", shape, FLOAT), limits, threshold)

    def do(
        self,
        operator: str,
        *operands: int | Array,
        limits: Limits | None = (-9.0, 9.0),
        threshold: float | None = None,
        shape: tuple[int, ...] = IMAGE,
        dtype: DType = FLOAT,
        **options: Any,
    ) -> int:
        inputs = [x if isinstance(x, int) else self.builder.constant(f"c{operator}", x) for x in operands]
        return self._lined(self.builder.add(operator, inputs, shape, dtype, **options), limits, threshold)

    def spans(self, *outputs: int, asymmetric: bool = True) -> dict[int, Limits]:
        found = spans_of(self.builder.build(list(outputs)), self.lines, asymmetric, {})
        return {t: tuple(span) for t, span in found.items()}


@pytest.mark.parametrize(("least", "symmetric"), [(-1.0, (-0.5, 0.5)), (0.0, (0.0, 0.5)), (-0.0, (0.0, 0.5))])
def test_thresholds_in_the_symmetric_mode(least: float, symmetric: Limits) -> None:
    table = Table()
    x = table.input((least, 2.0), 0.5)
    y = table.do("tanh", x, limits=(least, 2.0), threshold=0.5)
    assert table.spans(y, asymmetric=False) == {x: symmetric, y: symmetric}
    assert table.spans(y) == {x: (least, 2.0), y: (least, 2.0)}


@pytest.mark.parametrize(("operator", "operands", "is_by_threshold"), [
    ("add", "xz", False), ("tanh", "x", False), ("mul", "xz", True), ("sub", "xz", True),
    ("mul", ["x", FULL], True), ("mul", ["x", CHANNELS], False), ("sub", ["x", FULL], True),
    ("sub", ["x", CHANNELS], True), ("sub", ["x", NUMBER], False), ("sub", [NUMBER, "x"], False),
    ("sub", [FULL, "x"], True), ("sub", [CHANNELS, "x"], True), ("add", ["x", FULL], False),
])  # fmt: skip
def test_thresholds_in_the_asymmetric_mode(operator: str, operands: Any, is_by_threshold: bool) -> None:
    """Products and differences of two tensors are as in the symmetric mode."""
    table = Table()
    own = {"x": table.input((-4.0, 4.0)), "z": table.input((-5.0, 5.0))}
    given = [own[o] if isinstance(o, str) else o for o in operands]
    shared = table.do("tanh", own["x"])
    y = table.do(operator, *given, limits=(-1.0, 2.0), threshold=1.5)
    assert table.spans(y, shared, own["x"])[y] == ((-1.5, 1.5) if is_by_threshold else (-1.0, 2.0))


@pytest.mark.parametrize("asymmetric", [False, True])
def test_an_absolute_value_gives_its_threshold_to_what_is_alone(asymmetric: bool) -> None:
    table = Table()
    x = table.input((-4.0, 4.0))
    y = table.do("abs", x, limits=(0.0, 2.0), threshold=1.5)
    assert table.spans(y, asymmetric=asymmetric) == {x: (-1.5, 1.5), y: (-1.5, 1.5)}


@pytest.mark.parametrize("operator", ["logistic", "softmax"])
def test_fixed_ranges(operator: str) -> None:
    table = Table()
    y = table.do(operator, table.input((-4.0, 4.0)), limits=(0.25, 0.5))
    assert table.spans(y)[y] == (0.0, 1.0)


@pytest.mark.parametrize("limits", [None, (-9.0, 9.0)])
@pytest.mark.parametrize("operator", ["reshape", "squeeze", "expand_dims", "transpose", "tanh"])
def test_what_is_shaped_anew_has_the_range_of_its_input(operator: str, limits: Limits | None) -> None:
    table = Table()
    x = table.input((-1.0, 2.0))
    operands = [] if operator in ("squeeze", "tanh") else [np.array([0, 1, 2, 3], np.int32)]
    y = table.do(operator, x, *operands, limits=limits)
    expected = limits if operator == "tanh" else (-1.0, 2.0)
    assert table.spans(y).get(y) == expected


@pytest.mark.parametrize(("operator", "axes"), [
    ("average_pool_2d", None), ("mean", AREA), ("mean", AREA[:1]), ("reduce_max", AREA[:1]), ("sum", AREA),
])  # fmt: skip
@pytest.mark.parametrize(("x", "y", "found"), [
    ((-1.0, 2.0), (0.0, 3.0), (TENTH, 3.0)), ((0.0, 2.0), (-1.0, 3.0), (0.0, 3.0)),
    ((-1.0, 2.0), (-2.0, 3.0), (-2.0, 3.0)), ((0.0, 2.0), (0.5, 3.0), (0.5, 3.0)),
])  # fmt: skip
def test_pools_keep_the_sign(operator: str, axes: Array | None, x: Limits, y: Limits, found: Limits) -> None:
    table = Table()
    source = table.input(x)
    made = table.do(operator, source, *([] if axes is None else [axes]), limits=y)
    is_pool = axes is None or (operator == "mean" and axes.size == 2)
    assert table.spans(made) == {source: x, made: found if is_pool else y}


@pytest.mark.parametrize(("a", "b", "found"), [
    ((-1.0, 1.0), (-1.0, 2.0), (TENTH, 3.0)), ((0.0, 1.0), (-1.0, 2.0), (0.0, 3.0)),
    ((-1.0, 1.0), (0.0, 2.0), (0.0, 3.0)), ((0.0, 1.0), (0.0, 2.0), (0.0, 3.0)),
])  # fmt: skip
def test_a_product_of_two_signed_tensors_is_signed(a: Limits, b: Limits, found: Limits) -> None:
    table = Table()
    y = table.do("mul", table.input(a), table.input(b), limits=(0.0, 3.0))
    assert table.spans(y)[y] == found
    beside = Table()
    y = beside.do("mul", beside.input(a), FULL, limits=(0.0, 3.0))
    assert beside.spans(y)[y] == (0.0, 3.0)


@pytest.mark.parametrize(("operands", "low", "minimum"), [
    ("ab", 0.0, LEAST_MINIMUM), ([FULL, "a"], 0.0, LEAST_MINIMUM), (["a", FULL], -1.0, LEAST_MINIMUM),
    ([NUMBER, "a"], 0.0, TENTH), ([NUMBER, "a"], -1.0, 0.0), (["a", NUMBER], 0.0, TENTH), (["a", NUMBER], -1.0, 0.0),
])  # fmt: skip
def test_a_difference_is_signed(operands: Any, low: float, minimum: float) -> None:
    """Two tensors: the minimum becomes -1e-5. One number: only for an x that is not negative, -0.1 of the maximum."""
    table = Table()
    own = {"a": table.input((low, 4.0)), "b": table.input((0.0, 2.0))}
    y = table.do("sub", *(own[o] if isinstance(o, str) else o for o in operands), limits=(0.0, 3.0))
    assert table.spans(y)[y] == (minimum, 3.0)


JOINING = ["concatenation", "maximum", "minimum"]


def joined(
    operator: str, a: Limits, b: Limits, y: Limits, reader: str = "", *, is_output: bool = False
) -> list[Limits]:
    """The ranges of both inputs and the result; `reader` reads the first input, too."""
    table = Table()
    inputs = [table.do("tanh", table.input((-1.0, 1.0)), limits=limits) for limits in (a, b)]
    made = table.do(operator, *inputs, limits=y)
    more = [table.do(reader, inputs[0])] if reader else []
    found = table.spans(made, *more, *(inputs[:1] if is_output else ()))
    return [found[t] for t in (*inputs, made)]


@pytest.mark.parametrize("operator", JOINING)
def test_what_is_joined_has_one_range(operator: str) -> None:
    a, b, y, unsigned = (-1.0, 1.0), (-2.0, 2.0), (-3.0, 3.0), (0.0, 1.0)
    assert joined(operator, a, b, y) == [y, y, y]
    assert joined(operator, a, a, y) == [a, a, a]
    assert joined(operator, a, b, y, "tanh") == [a, b, y]
    assert joined(operator, a, b, y, is_output=True) == [a, b, y]
    other = [y, y, y] if operator != "concatenation" else [unsigned, b, y]
    assert joined(operator, unsigned, b, y) == other
    assert joined(operator, unsigned, (0.0, 2.0), (0.0, 3.0)) == [(0.0, 3.0)] * 3
    mixed = [y, y, y] if operator != "concatenation" else [unsigned, (0.0, 2.0), y]
    assert joined(operator, unsigned, (0.0, 2.0), y) == mixed
    # a pool of maxima beside does not count, and takes its range from its input
    assert joined(operator, a, b, y, "max_pool_2d") == [y, y, y]
    assert joined(operator, a, a, y, "tanh") == [a, a, y]


@pytest.mark.parametrize("operator", JOINING)
def test_what_is_joined_to_itself_gives_its_range(operator: str) -> None:
    for is_output in (False, True):
        table = Table()
        x = table.do("tanh", table.input((-1.0, 1.0)), limits=(-2.0, 2.0))
        y = table.do(operator, x, x, limits=(-3.0, 3.0))
        assert table.spans(*((y, x) if is_output else (y,)))[y] == ((-3.0, 3.0) if is_output else (-2.0, 2.0))


def test_three_are_joined_unless_one_is_read_elsewhere() -> None:
    for is_read in (False, True):
        table = Table()
        inputs = [table.do("tanh", table.input((-1.0, 1.0)), limits=(-r, r)) for r in (1.0, 2.0, 4.0)]
        y = table.do("concatenation", *inputs, limits=(-3.0, 3.0))
        found = table.spans(y, *([table.do("exp", inputs[2])] if is_read else []))
        reaches = [found[t][1] for t in (*inputs, y)]
        assert reaches == ([1.0, 2.0, 4.0, 3.0] if is_read else [3.0] * 4)


@pytest.mark.parametrize(("operator", "found"), [
    ("relu", (0.0, 3.0)), ("relu6", (0.0, 3.0)), ("relu_0_to_1", (0.0, 3.0)), ("max_pool_2d", (0.0, 3.0)),
    ("leaky_relu", (-1.0, 3.0)), ("prelu", (-1.0, 3.0)), ("tanh", None), ("average_pool_2d", None),
])  # fmt: skip
def test_what_is_alone_in_front_of_a_rectifier_takes_its_range(operator: str, found: Limits | None) -> None:
    limits = (-0.5, 3.0) if operator == "max_pool_2d" else (0.0, 3.0)  # else step 2 gives it a sign
    found = limits if operator == "max_pool_2d" else found
    operands = [CHANNELS] if operator == "prelu" else []
    for reader in ("", "exp", "output"):
        table = Table()
        x = table.input((-1.0, 4.0))
        y = table.do(operator, x, *operands, limits=limits)
        more = [table.do("exp", x)] if reader == "exp" else [x] if reader else []
        spans = table.spans(y, *more)
        if found is None:
            assert spans[x] == (-1.0, 4.0)
        else:  # step 9: the result has what the input has then
            assert (spans[x], spans[y]) == ((found, found) if not reader else ((-1.0, 4.0), (-1.0, 4.0)))


@pytest.mark.parametrize(("kinds", "read", "is_given"), [
    (("mul", "mul"), False, True), (("mul", "add"), False, False), (("mul", "mul"), True, False),
    (("mul", "by a constant"), False, False),
])  # fmt: skip
def test_two_products_that_are_added_have_the_range_of_the_sum(kinds: Any, read: bool, is_given: bool) -> None:
    table = Table()
    products = []
    for kind in kinds:
        operands = [table.input((-1.0, 1.0)), FULL if kind == "by a constant" else table.input((-1.0, 1.0))]
        products.append(table.do("mul" if kind == "by a constant" else kind, *operands, limits=(-2.0, 2.0)))
    y = table.do("add", *products, limits=(-3.0, 3.0))
    found = table.spans(y, *([table.do("exp", products[0])] if read else []))
    assert [found[t] for t in products] == [(-3.0, 3.0) if is_given else (-2.0, 2.0)] * 2


@pytest.mark.parametrize("operator", ["equal", "greater", "greater_equal", "less", "less_equal"])
def test_what_is_compared_has_the_range_of_both(operator: str) -> None:
    table = Table()
    a, b = table.input((-1.0, 4.0)), table.input((-2.0, 3.0))
    found = table.spans(table.do(operator, a, b, limits=None, dtype=DType.BOOL))
    assert found[a] == found[b] == (-2.0, 4.0)
    beside = Table()
    x = beside.input((-1.0, 4.0))
    assert beside.spans(beside.do(operator, x, NUMBER, limits=None, dtype=DType.BOOL)) == {x: (-1.0, 4.0)}


@pytest.mark.parametrize(("operator", "operands", "found"), [
    ("mul", ["x", NUMBER], (-2.0, 8.0)), ("mul", [NUMBER, "x"], (-2.0, 8.0)), ("mul", ["x", -NUMBER], (-8.0, 2.0)),
    ("div", ["x", NUMBER], (-0.5, 2.0)), ("div", [NUMBER, "x"], None), ("div", ["x", 0 * NUMBER], None),
    ("neg", ["x"], (-4.0, 1.0)), ("mul", ["x", FULL], None), ("add", ["x", NUMBER], None),
    ("maximum", ["x", NUMBER], (-1.0, 4.0)), ("minimum", [NUMBER, "x"], (-1.0, 4.0)), ("maximum", ["x", FULL], None),
    ("gather", ["x", np.array([1], np.int32)], (-1.0, 4.0)), ("gather", ["x", np.array(1, np.int32)], (-1.0, 4.0)),
    ("gather", ["x", np.array([1, 0], np.int32)], None), ("slice", ["x", AREA, AREA], (-1.0, 4.0)),
    ("pad", ["x", AREA], (-1.0, 4.0)), ("tile", ["x", AREA], (-1.0, 4.0)), ("leaky_relu", ["x"], (-1.0, 4.0)),
    ("reduce_max", ["x", AREA], (-1.0, 4.0)), ("reduce_max", ["x", AREA[:1]], None), ("exp", ["x"], None),
])  # fmt: skip
def test_what_does_not_change_values_has_the_range_of_its_input(
    operator: str, operands: list[Any], found: Limits | None
) -> None:
    """Another layer reads the input, too: no range goes back."""
    table = Table()
    x = table.input((-1.0, 4.0))
    y = table.do(operator, *(x if isinstance(o, str) else o for o in operands))
    spans = table.spans(y, table.do("tanh", x))
    assert (spans[x], spans[y]) == ((-1.0, 4.0), (-9.0, 9.0) if found is None else found)


@pytest.mark.parametrize(("sizes", "options", "is_doubled"), [
    ((8, 8), {}, True), ((8, 8), {"half_pixel_centers": True}, True), ((8, 8), {"align_corners": True}, False),
    ((8, 4), {}, False), ((4, 8), {}, False), ((12, 12), {}, False),
])  # fmt: skip
def test_doubled_pixels_have_the_range_of_the_input(sizes: tuple[int, int], options: Any, is_doubled: bool) -> None:
    for operator in ("resize_nearest_neighbor", "resize_bilinear"):
        table = Table()
        x = table.input((-1.0, 4.0))
        y = table.do(operator, x, np.array(sizes, np.int32), shape=(1, *sizes, 2), **options)
        is_given = is_doubled and operator == "resize_nearest_neighbor"
        assert table.spans(y)[y] == ((-1.0, 4.0) if is_given else (-9.0, 9.0))


@pytest.mark.parametrize(
    ("sizes", "is_doubled"), [((6, 10), True), ((6, 6), False), ((10, 10), False), ((10, 6), False)]
)
def test_doubled_pixels_of_images_that_are_not_square(sizes: tuple[int, int], is_doubled: bool) -> None:
    table = Table()
    x = table.input((-1.0, 4.0), shape=(1, 3, 5, 2))
    y = table.do("resize_nearest_neighbor", x, np.array(sizes, np.int32), shape=(1, *sizes, 2))
    assert table.spans(y)[y] == ((-1.0, 4.0) if is_doubled else (-9.0, 9.0))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_step_is_taken_until_nothing_changes(count: int) -> None:
    """A range goes back through several layers, one by one."""
    table = Table()
    chain = [table.input((-1.0, 9.0))]
    for number in range(count):
        chain.append(table.do(("relu", "relu6")[number % 2], chain[-1], limits=(0.0, 8.0 - number)))
    assert table.spans(chain[-1]) == dict.fromkeys(chain, (0.0, 9.0 - count))
