"""`tflq explain`: ends in the stored integer; side by side it says where two computations part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.faults import CHANNEL, DIGITS, NODE, corrupted_weights, digits, wrong_multiplier
from tflq.converters.tflite import model_to_bytes
from tflq.parallel.executions import as_is
from tflq.sampling import RandomSamples

PLACE = ("--tensor", NODE, "--index", f"1,1,{CHANNEL}", "--sample", "2")


def stored() -> int:
    execution = as_is(digits())
    t = next(n.outputs[0] for n in execution.graph.nodes if n.name == NODE)
    found = execution.engine.run(RandomSamples(digits().main, 3).take(0, 3), [t])
    return int(found[t][2, 0, 1, 1, CHANNEL])


def test_the_last_step_is_the_stored_integer() -> None:
    done = tflq("explain", DIGITS, *PLACE)
    assert (done.status, done.err) == (0, "")
    first = done.out.splitlines()[0]
    assert first.startswith(f"{stored()} is ")
    assert " of sample 2, as a real number " in first
    report = tflq("explain", DIGITS, *PLACE, "--json").json
    (part,) = report["parts"]
    steps = {step["step"]: step["value"] for step in part["steps"]}
    assert steps["stored value"] == report["stored"] == stored()
    assert sum(steps["products"]) == steps["sum of products"]
    assert steps["accumulator"] == steps["sum of products"] + steps["bias"]
    assert np.shape(steps["inputs"]) == np.shape(steps["weights"])


def test_a_target() -> None:
    found = tflq("explain", DIGITS, *PLACE, "--target", "gap9-ne16", "--against", "@tflite", "--json").json
    assert found["first"]["parts"][0]["arithmetic"] == "gap9"
    assert abs(found["first"]["real"] - found["second"]["real"]) < 0.1


@pytest.mark.parametrize(("model", "step"), [(corrupted_weights, "weights"), (wrong_multiplier, "multiplier")])
def test_two_computations_part_at_the_fault(model, step: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(model_to_bytes(model()))
    done = tflq("explain", "bad.tflite", *PLACE, "--against", DIGITS, cwd=tmp_path)
    assert done.status == 1
    assert f"; they part at {step}" in done.out.splitlines()[0]
    marked = [line for line in done.out.splitlines() if line.startswith("->")]
    assert [line.split()[1] for line in marked] == [step]
    assert tflq("explain", DIGITS, *PLACE, "--against", DIGITS).status == 0


def test_refusals() -> None:
    assert (
        "is no tensor of the graph; nearest are " in tflq("explain", DIGITS, "--tensor", "x", "--index", "0").refused()
    )
    assert "is not an index" in tflq("explain", DIGITS, "--tensor", NODE, "--index", "0,x").refused()
    assert "is out of range" in tflq("explain", DIGITS, "--tensor", NODE, "--index", "0,0,99").refused()
    assert "there are 2 samples" in tflq("explain", DIGITS, *PLACE, "-n", "2").refused()
    assert "x.npz: no such file" in tflq("explain", DIGITS, *PLACE, "--against", "x.npz").refused()
    assert "add --target" in tflq("explain", DIGITS, *PLACE, "--set", "weight_bits=4").refused()
