"""What is said of a dump that is no fault: another library's floats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.faults import DIGITS, digits
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.diagnosis.compare import Running, dump_of
from tflq.diagnosis.dumps.wanted import Archive, Stored
from tflq.diagnosis.hypotheses.diagnose import diagnose
from tflq.parallel.executions import for_target
from tflq.sampling import GivenSamples

IMAGES = np.load(DIGITS.parent / "digits_test.npz")["images"][:4].reshape(4, 1, 8, 8, 1)


@pytest.mark.parametrize(("units", "is_named"), [(3, True), (1 << 12, False)])
def test_the_last_places_of_another_library(units: int, is_named: bool) -> None:
    target = find_target("openvino")
    side = Running(
        for_target(digits().main, target, parse_settings(target.settings, (), ())), GivenSamples([IMAGES]), "digits"
    )
    output = side.execution.graph.tensors[side.execution.graph.outputs[0]].name
    last = next(c for c in side.columns if c.name == output)
    (sound,) = side.take(0, 4, [last]).values()
    assert sound.dtype == np.float32
    bits = sound.view(np.int32)
    largest = sound == sound.max(axis=tuple(range(1, sound.ndim)), keepdims=True)
    dump = dump_of(
        Archive(
            "board", (Stored(last.name, (bits - np.where(largest, np.int32(units), np.int32(0))).view(np.float32)),)
        ),
        side,
    )
    found = diagnose(side, dump, 4)
    assert found is not None
    named = f"differ only by float32 rounding, by at most {units} ULP"
    assert any(named in f.words for f in found.exact) == is_named
