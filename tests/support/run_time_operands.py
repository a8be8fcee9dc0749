"""One node with an operand that is usually constant, computed at run time: what a format takes, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Graph, GraphBuilder

X = (2, 4, 6, 3)


def reals(*shape: int) -> Singles:
    """Numbers that all differ."""
    return np.random.default_rng([3, *shape]).normal(size=shape).astype(np.float32)


def whole(*numbers: object) -> Array:
    """Indices, axes, sizes."""
    return np.array(numbers, np.int32)


@dataclass(frozen=True)
class Form:
    """One node.

    Attributes:
        operator: of the node.
        operands: its inputs.
        shape: of its output.
        taken: positions that may be computed.
        refused: positions that must be constant.
        options: of the node; those that have the file format's own default are left out in one test.
        data: position of the input that is always computed.
    """

    operator: str
    operands: tuple[Array, ...]
    shape: tuple[int, ...]
    taken: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    data: int = 0

    def graph(self, computed: int) -> tuple[Graph, list[Array]]:
        """Return the graph with one more computed operand, and two samples of its inputs."""
        b, inputs, samples = GraphBuilder(self.operator), list[int](), list[Array]()
        for position, value in enumerate(self.operands):
            if position in (self.data, computed):
                inputs.append(b.input(f"operand_{position}", value.shape, DType.of(value.dtype)))
                samples.append(np.stack([value, value.reshape(-1)[::-1].reshape(value.shape)]))
            else:
                inputs.append(b.constant(f"operand_{position}", value))
        kind = DType.INT32 if self.operator == "arg_max" else DType.FLOAT32
        return b.build([b.add(self.operator, inputs, self.shape, kind, **self.options)]), samples


WINDOW: dict[str, Any] = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
IMAGE, CHOICE = reals(*X), reals(*X) > 0
FORMS = (
    Form("conv_2d", (IMAGE, reals(5, 3, 2, 3), reals(5)), (2, 4, 6, 5), (2,), (1,),
         {**WINDOW, "dilation_h_factor": 1, "dilation_w_factor": 1}),
    Form("depthwise_conv_2d", (IMAGE, reals(1, 3, 2, 3), reals(3)), X, (2,), (1,), {**WINDOW, "depth_multiplier": 1}),
    Form("fully_connected", (IMAGE, reals(5, 3), reals(5)), (2, 4, 6, 5), (1, 2), (), {"keep_num_dims": True}),
    Form("fully_connected", (reals(4, 6), reals(5, 6)), (4, 5), (1,), (), {"keep_num_dims": False}),
    Form("transpose_conv", (whole(2, 8, 12, 5), reals(5, 2, 2, 3), IMAGE, reals(5)), (2, 8, 12, 5), (3,), (1,),
         {"padding": "same", "stride_h": 2, "stride_w": 2, "fused_activation_function": "none"}, data=2),
    Form("conv_3d", (reals(1, 3, 4, 5, 2), reals(2, 2, 3, 2, 4), reals(4)), (1, 3, 4, 5, 4), (2,), (1,),
         {**WINDOW, "stride_d": 1, "dilation_d_factor": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}),
    Form("pad", (IMAGE, whole([0, 0], [1, 0], [0, 2], [0, 0])), (2, 5, 8, 3), (), (1,)),
    Form("padv2", (IMAGE, whole([0, 0], [1, 0], [0, 2], [0, 0]), reals()), (2, 5, 8, 3), (2,), (1,)),
    Form("mirror_pad", (IMAGE, whole([0, 0], [1, 0], [0, 2], [0, 0])), (2, 5, 8, 3), (), (1,), {"mode": "reflect"}),
    Form("transpose", (IMAGE, whole(0, 2, 1, 3)), (2, 6, 4, 3), (), (1,)),
    Form("tile", (IMAGE, whole(1, 2, 1, 1)), (2, 8, 6, 3), (), (1,)),
    Form("reverse_v2", (IMAGE, whole(1)), X, (), (1,)),
    Form("mean", (IMAGE, whole(1, 2)), (2, 3), (), (1,), {"keep_dims": False}),
    Form("reduce_max", (IMAGE, whole(1)), (2, 6, 3), (), (1,), {"keep_dims": False}),
    Form("arg_max", (IMAGE, whole(3)), (2, 4, 6), (), (1,)),
    Form("cumsum", (IMAGE, np.array(1, np.int32)), X, (), (1,), {"exclusive": False, "reverse": False}),
    Form("slice", (IMAGE, whole(0, 1, 2, 0), whole(2, 3, 4, 3)), (2, 3, 4, 3), (), (1, 2)),
    Form("space_to_batch_nd", (IMAGE, whole(2, 3), whole([0, 0], [0, 0])), (12, 2, 2, 3), (), (1, 2)),
    Form("batch_to_space_nd", (IMAGE, whole(2, 1), whole([0, 0], [0, 0])), (1, 8, 6, 3), (), (1, 2)),
    Form("resize_bilinear", (IMAGE, whole(3, 5)), (2, 3, 5, 3), (), (1,),
         {"align_corners": False, "half_pixel_centers": False}),
    Form("resize_nearest_neighbor", (IMAGE, whole(3, 5)), (2, 3, 5, 3), (), (1,),
         {"align_corners": False, "half_pixel_centers": False}),
    Form("gather", (IMAGE, whole(2, 0, 3)), (2, 3, 6, 3), (1,), (), {"axis": 1, "batch_dims": 0}),
    Form("gather", (IMAGE, whole(1, 0, 1)), (3, 4, 6, 3), (1,), (), {"axis": 0, "batch_dims": 0}),
    Form("gather", (IMAGE, whole([2, 0], [1, 3])), (2, 2, 6, 3), (1,), (), {"axis": 1, "batch_dims": 1}),
    Form("gather_nd", (IMAGE, whole([1, 0], [0, 1], [1, 1])), (3, 6, 3), (1,)),
    Form("embedding_lookup", (whole(2, 0, 4), reals(5, 4)), (3, 4), (1,)),
    Form("embedding_lookup", (whole(2, 0, 4), reals(5, 4)), (3, 4), (0,), (), data=1),
    Form("scatter_nd", (whole([2], [0], [5]), reals(3, 4), whole(6, 4)), (6, 4), (1,)),
    Form("scatter_nd", (whole([2], [0], [2]), reals(3, 4), whole(6, 4)), (6, 4), (0,), (), data=1),
    Form("one_hot", (whole(2, 0, 3), np.array(4, np.int32), reals(), reals(1).reshape(())), (4, 3), (2, 3), (),
         {"axis": 0}),
    Form("select_v2", (CHOICE, IMAGE, reals(3)), X, (1, 2)),
    Form("select", (CHOICE[:, 0, 0, 0], IMAGE, -IMAGE), X, (0, 2), (), data=1),
    Form("fill", (whole(3, 2), reals()), (3, 2), (1,), (), data=1),
    Form("fill", (whole(3, 2), reals()), (3, 2), (), (0,), data=1),
    Form("broadcast_to", (reals(6, 1), whole(2, 6, 3)), (2, 6, 3), (), (1,)),
    Form("batch_matmul", (reals(2, 3, 4), reals(2, 4, 3)), (2, 3, 3), (1,), (), {"adj_x": False, "adj_y": False}),
    Form("reverse_sequence", (reals(3, 4, 2), whole(2, 4, 1)), (3, 4, 2), (1,), (), {"seq_dim": 1, "batch_dim": 0}),
    Form("prelu", (IMAGE, reals(3)), X, (1,)),
    Form("add", (IMAGE, reals(3)), X, (1,), (), {"fused_activation_function": "none"}),
    Form("pack", (reals(3, 3), reals(3, 3) + 1, -reals(3, 3)), (3, 3, 3), (1, 2), (), {"axis": 0, "values_count": 3}),
    Form("concatenation", (IMAGE, -IMAGE), (4, 4, 6, 3), (1,), (), {"axis": 0, "fused_activation_function": "none"}),
    Form("softmax", (IMAGE,), X, (), (), {"beta": 0.0}),
    Form("gelu", (IMAGE,), X, (), (), {"approximate": False}),
)  # fmt: skip
"""Every operator that takes an operand which most files hold as a constant."""
DEFAULTS: dict[str, object] = {
    "adj_x": False, "adj_y": False, "align_corners": False, "approximate": False, "axis": 0, "batch_dim": 0,
    "batch_dims": 0, "beta": 0.0, "dilation_d_factor": 1, "dilation_h_factor": 1, "dilation_w_factor": 1,
    "exclusive": False, "fused_activation_function": "none", "half_pixel_centers": False, "keep_dims": False,
    "mode": "reflect", "reverse": False,
}  # fmt: skip
"""What TFLite's file format (schema.fbs) gives an option that a file does not state."""


def cases(kind: str) -> Iterator[tuple[str, Form, int]]:
    """Yield the name, the form and the position of each operand that is "taken" or "refused"."""
    for number, form in enumerate(FORMS):
        for position in getattr(form, kind):
            yield f"{number} {form.operator} {position}", form, position


def unstated() -> Iterator[tuple[str, Form, str]]:
    """Yield each form with the key of an option that has its default there."""
    for number, form in enumerate(FORMS):
        for key, value in form.options.items():
            if key in DEFAULTS and DEFAULTS[key] == value:
                yield f"{number} {form.operator} {key}", form, key
