"""`tflq compare` names the runtime of a dump, and the two rules at which two runtimes part."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from tests.runtimes.cases import CASES, Case
from tflq.converters.tflite import write_model
from tflq.emit.archives import write_npz
from tflq.graph import Model

BY_NAME = {case.name: case for case in CASES}


def write(folder: Path, case: Case) -> Path:
    path = folder / "model.tflite"
    write_model(Model([case.graph]), path)
    return path


def dump(model: Path, case: Case, runtime: str) -> Path:
    path = model.with_name(f"{runtime}.npz")
    tflq.run(model, case.samples, runtime=runtime, all_tensors=True, output=path)
    return path


@pytest.mark.parametrize(
    ("runtime", "name", "names"),
    [
        ("xnnpack", "add_int8_none_0.1", ("xnnpack",)),
        ("litert-optimized", "mean_int8_12_keep", ("litert-optimized",)),
        ("tflm", "fully_connected_int16_6_tensor", ("tflm", "cmsis-nn", "cmsis-nn-single", "tosa")),
        ("cmsis-nn-single", "conv_2d_int8_8_tensor", ("cmsis-nn-single",)),
    ],
)
def test_a_dump_of_another_runtime(tmp_path: Path, runtime: str, name: str, names: tuple[str, ...]) -> None:
    case = BY_NAME[name]
    model = write(tmp_path, case)
    file = dump(model, case, runtime)
    result = tflq.compare(model, file, case.samples)
    assert result.runtimes == names
    assert result.diagnosis is None
    assert f"the dump has the integers of runtime {' or '.join(names)}: it is correct, not faulty" in result.remark
    assert tflq.compare(f"{model}@{runtime}", file, case.samples).is_equal


def test_a_faulty_dump_is_no_other_runtimes(tmp_path: Path) -> None:
    case = BY_NAME["conv_2d_int8_8_tensor"]
    model = write(tmp_path, case)
    result = tflq.run(model, case.samples, all_tensors=True)
    write_npz(tmp_path / "faulty.npz", {name: values[:, ::-1] // 2 for name, values in result.tensors.items()})
    assert tflq.compare(model, tmp_path / "faulty.npz", case.samples).runtimes == ()


def test_two_runtimes_side_by_side(tmp_path: Path) -> None:
    case = BY_NAME["fully_connected_int16_6_tensor"]
    model = write(tmp_path, case)
    result = tflq.compare(f"{model}@ref", f"{model}@tflm", case.samples)
    assert not result.is_equal
    assert (
        "differ first in FULLY_CONNECTED_0_0 (fully_connected); ref: half_away(float64(total) * (si * sw / so)); tflm: "
        in result.remark
    )
    assert tflq.compare(f"{model}@tflm", f"{model}@tosa", case.samples).is_equal
