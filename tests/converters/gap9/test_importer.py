"""Files that NNTool's importer fails on for what is folded here: said by convert, with the way out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.gap9_nets import Net
from tflq.converters.tflite import read_model, write_model
from tflq.graph import DType, Model


def _flattened(operator: str) -> Model:
    """A map that a computed shape flattens: of SHAPE and SLICE, and what makes one number of three."""
    net = Net()
    x, builder = net.conv(net.x, (-1.0, 1.0)), net.builder

    def numbers(*values: int) -> int:
        return builder.constant("numbers", np.array(values, np.int32))

    shape = builder.add("shape", [x], (4,), DType.INT32, out_type="int32")
    part = builder.add("slice", [shape, numbers(1), numbers(3)], (3,), DType.INT32)
    if operator == "reduce_prod":
        size = builder.add("reduce_prod", [part, numbers(0)], (1,), DType.INT32, keep_dims=True)
    else:
        size = builder.add(
            "mul", [builder.add("sum", [part, numbers(0)], (1,), DType.INT32), numbers(0)], (1,), DType.INT32
        )
        size = builder.add("add", [size, numbers(256)], (1,), DType.INT32)
    wanted = builder.add("concatenation", [numbers(1), size], (2,), DType.INT32, axis=0)
    return net.model(net.dense(net.add("reshape", [x, wanted], (1, 256), (-1.0, 1.0)), (-3.0, 3.0)))


@pytest.mark.parametrize("engine", ["ne16", "sq8"])
def test_reduce_prod_is_warned_about_and_cut_writes_a_file_without_it(tmp_path: Path, engine: str) -> None:
    """NNTool, run on the two files: NotImplementedError of REDUCE_PROD; the settled one is equal in all 18 checks."""
    path, settled = tmp_path / "model.tflite", tmp_path / "settled.tflite"
    write_model(_flattened("reduce_prod"), path)
    found = tflq.convert(path, f"gap9-{engine}")
    assert set(found.departures) == {"REDUCE_PROD_0_3"}
    assert "NNTool's importer fails on REDUCE_PROD" in found.departures["REDUCE_PROD_0_3"]
    assert "tflq cut MODEL --settled" in found.departures["REDUCE_PROD_0_3"]
    assert found.to_dict()["departures"] == dict(found.departures)
    assert [row["layer"] for row in found.rows("differences")] == ["REDUCE_PROD_0_3"]
    shown = command("convert", path, "--target", f"gap9-{engine}", "-o", tmp_path / "out")
    heading = shown.out.splitlines().index("differs from NNTool here:")
    assert shown.out.splitlines()[heading + 1].startswith("  REDUCE_PROD_0_3: ")

    done = command("cut", path, "--settled", "-o", settled)
    assert (done.status, done.err) == (0, "")
    assert [node.operator for node in read_model(settled).main.nodes] == ["conv_2d", "reshape", "fully_connected"]
    again = tflq.convert(settled, f"gap9-{engine}")
    assert not again.departures
    codes = np.random.default_rng(5).integers(-128, 128, (9, 1, 8, 8, 4)).astype(np.int8)
    (first,), (second,) = (tflq.run(p, codes, target=f"gap9-{engine}").tensors.values() for p in (path, settled))
    np.testing.assert_array_equal(first, second)


def test_shapes_that_nntool_reads_are_not_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    write_model(_flattened("sum"), path)
    assert not tflq.convert(path, "gap9-ne16").departures
