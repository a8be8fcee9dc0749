"""bench, search and explain on operators that GAP9 took up late: expressions, bilinear resizes, reductions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.gap9_nets import Net
from tflq.converters.tflite import model_to_bytes
from tflq.graph import Model

_CLASSES = 4


def _expression(net: Net, x: int) -> int:
    return net.unary("exp", net.unary("abs", x, (0.0, 3.0)), (0.0, 20.0))


def _bilinear(net: Net, x: int) -> int:
    size = net.builder.constant("size", np.array([6, 12], np.int32))
    options = {"align_corners": False, "half_pixel_centers": True}
    return net.add("resize_bilinear", [x, size], (1, 6, 12, 4), (-2.0, 3.0), **options)


def _network(kind: str) -> Model:
    net = Net()
    x = net.conv(net.x, (-2.0, 3.0), (3, 3))
    if kind == "expression":
        x = _expression(net, x)
    elif kind == "resize_bilinear":
        x = _bilinear(net, x)
    else:
        axes = net.builder.constant("axes", np.array([2], np.int32))
        x = net.add(kind, [x, axes], (1, 8, 4), (-2.0, 3.0), keep_dims=False)
    return net.model(net.dense(x, (-9.0, 9.0), outputs=_CLASSES))


@pytest.fixture(params=["expression", "resize_bilinear", "mean", "sum", "reduce_max"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    kind: str = request.param
    path = tmp_path / "model.tflite"
    path.write_bytes(model_to_bytes(_network(kind)))
    return kind, path


def test_search_explain_and_bench(model: tuple[str, Path], tmp_path: Path) -> None:
    kind, path = model
    rng = np.random.default_rng(3)
    samples = rng.integers(-128, 128, (6, 8, 8, 4)).astype(np.int8)
    sought = tflq.search(str(path), "gap9-ne16", samples, min_sqnr=-20.0, widths=(4, 8))
    assert sought.is_kept
    assert {rule.partition(":")[2] for rule in sought.layers} <= {"weight_bits=4", "weight_bits=8"}
    node = {"expression": "expr_0"}.get(kind, f"{kind.upper()}_0_1")
    index = {"expression": (0, 1, 2, 3), "resize_bilinear": (0, 1, 2, 3)}.get(kind, (0, 1, 3))
    told = tflq.explain(str(path), node, index, target="gap9-ne16")
    assert [step for part in told.explanation.parts for step in part.steps]
    folder = tmp_path / "data"
    folder.mkdir()
    for number, sample in enumerate(samples):
        (folder / f"{number}.bin").write_bytes(sample.tobytes())
    rows = (f"{n}.bin,{_CLASSES},{n % _CLASSES}\n" for n in range(len(samples)))
    (folder / "y_labels.csv").write_text("".join(rows))
    found = tflq.bench(str(path), folder, targets=("gap9-ne16", "gap9-sq8"))
    assert [row["name"] for row in found.rows()][1:] == ["gap9-ne16", "gap9-sq8"]
