"""Dumps as tools and boards write them: each form gives the tensors that it was made of, what is open is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.faults import DIGITS, digits
from tflq.api.compare import compare
from tflq.api.dumps import dumps
from tflq.api.options import CalibrationOptions, TargetOptions
from tflq.diagnosis.compare import Running, dump_of
from tflq.diagnosis.compare.dumps import Dump, wanted_of
from tflq.diagnosis.dumps.files import read_archive
from tflq.diagnosis.dumps.wanted import Archive, DumpOptions, Stored
from tflq.errors import InputError, OptionError, UsageError
from tflq.graph import Affine, Array
from tflq.parallel.executions import as_is
from tflq.sampling import GivenSamples

IMAGES = np.load(DIGITS.parent / "digits_test.npz")["images"][:3].reshape(3, 1, 8, 8, 1)
SIDE = Running(as_is(digits()), GivenSamples([IMAGES]), "digits")
VALUES = {c.name: a for c in SIDE.columns if c.node for a in SIDE.take(0, 3, [c]).values()}
WANTED = {w.name: w for w in wanted_of(SIDE) if w.operator is not None}


def planar(a: Array) -> Array:
    return np.moveaxis(a, -1, 2) if a.ndim == 5 else a


def real(name: str, a: Array) -> Array:
    affine = WANTED[name].tensor.quantization
    assert isinstance(affine, Affine)
    return (a.astype(np.float32) - np.float32(affine.zero_point[0])) * affine.scale[0]


NAMES = {
    "name": lambda name, i: name,
    "operator": lambda name, i: str(WANTED[name].operator),
    "layer": lambda name, i: f"layer{WANTED[name].operator:03d}_out0",
    "tensor": lambda name, i: f"tensor_{WANTED[name].index}",
    "node": lambda name, i: next(c.node for c in SIDE.columns if c.name == name),
    "first": lambda name, i: name.split(";")[0],
    "letters": lambda name, i: "".join(c if c.isalnum() else "_" for c in name),
}
NUMBERS = {
    "own": lambda name, a: a,
    "uint8": lambda name, a: (a.astype(int) + 128).astype(np.uint8),
    "int32": lambda name, a: a.astype(np.int32),
    "quantized floats": lambda name, a: a.astype(np.float32),
    "real": real,
}
LAYOUTS = {
    "model": lambda a: a,
    "planar": planar,
    "no batch": lambda a: a[:, 0],
    "flat": lambda a: a.reshape(3, -1),
    "padded": lambda a: np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, -a.shape[-1] % 16)]) if a.ndim == 5 else a,
}


def read(arrays: Mapping[str, Array], **options: str) -> Dump:
    archive = Archive("board", tuple(Stored(name, array) for name, array in arrays.items()))
    return dump_of(archive, SIDE, DumpOptions(**options))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("names", NAMES)
def test_every_form_gives_the_tensors_it_was_made_of(names: str, numbers: str, layout: str) -> None:
    arrays = {
        NAMES[names](name, i): LAYOUTS[layout](NUMBERS[numbers](name, a)) for i, (name, a) in enumerate(VALUES.items())
    }
    order = np.random.default_rng(len(names)).permutation(len(arrays))
    keys = list(arrays)
    found = read({keys[i]: arrays[keys[i]] for i in order})
    assert [c.name for c in found.columns] == list(VALUES)
    for name, a in VALUES.items():
        assert found.arrays[name].dtype == a.dtype
        assert np.array_equal(found.arrays[name], a), name


def test_whole_floats_never_pass_silently_as_real_numbers() -> None:
    name = next(iter(VALUES))
    found = read({name: VALUES[name].astype(np.float32)})
    assert found.understood is not None
    assert "quantized values in float32" in found.understood.readings[0].encoding
    forced = read({name: VALUES[name].astype(np.float32)}, values="real")
    assert forced.arrays[name].dtype == np.float32
    with pytest.raises(InputError, match="specify values='quantized' or values='real'"):
        read({name: np.zeros_like(VALUES[name], np.float32)})


def test_layouts_that_shapes_do_not_tell() -> None:
    images = [name for name, a in VALUES.items() if a.ndim == 5]
    flat = {name: planar(VALUES[name]).reshape(3, -1) for name in images}
    assert not np.array_equal(read(flat).arrays[images[0]], VALUES[images[0]])
    found = read(flat, layout="nchw")
    assert all(np.array_equal(found.arrays[name], VALUES[name]) for name in images)


def test_extras_samples_and_accumulators() -> None:
    first, second = list(VALUES)[:2]
    arrays = {
        first: VALUES[first],
        second: VALUES[second][:2],
        "cycles": np.arange(13),
        "Identity_scratch": VALUES[first].astype(np.int32) * 1000,
    }
    found = read(arrays)
    assert found.count == 2
    assert found.understood is not None
    notes = "; ".join(found.understood.notes)
    assert "passed over, no tensor of the model: cycles, Identity_scratch" in notes
    assert "the first 2 of each are taken" in notes
    last = list(VALUES)[-1]
    found = read({first: VALUES[first], last: VALUES[last].astype(np.int64) * 900})
    assert found.understood is not None
    assert "accumulators or another tensor" in "; ".join(found.understood.notes)


def test_raw_bytes_of_all_results_in_order_and_of_one(tmp_path: Path) -> None:
    rows = np.concatenate([a.reshape(3, -1) for a in VALUES.values()], axis=1)
    (tmp_path / "arena.bin").write_bytes(rows.tobytes())
    found = dump_of(read_archive(tmp_path / "arena.bin"), SIDE, samples=3)
    assert all(np.array_equal(found.arrays[name], a) for name, a in VALUES.items())
    output = list(VALUES)[-1]
    (tmp_path / "out.bin").write_bytes(VALUES[output].tobytes())
    assert np.array_equal(dump_of(read_archive(tmp_path / "out.bin"), SIDE).arrays[output], VALUES[output])
    (tmp_path / "out.bin").write_bytes(VALUES[output].astype(np.float32).tobytes())
    with pytest.raises(InputError, match="specify dtype int8, dtype int32, or dtype float32"):
        dump_of(read_archive(tmp_path / "out.bin"), SIDE, samples=3)


def test_text_of_a_console_and_of_c(tmp_path: Path) -> None:
    name, a = next(iter(VALUES.items()))
    operator = WANTED[name].operator
    lines = []
    for s in range(3):
        lines += [f"# sample {s}", f"[{operator}] conv out int8", ", ".join(map(str, a[s].reshape(-1)[:50]))]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    found = dump_of(read_archive(tmp_path / "log.txt"), SIDE)
    assert found.short == {name}
    assert np.array_equal(found.arrays[name], a.reshape(3, -1)[:, :50])
    cells = ", ".join(f"0x{int(v) & 255:02x}" for v in a[0].reshape(-1))
    node = next(c.node for c in SIDE.columns if c.name == name)
    (tmp_path / "layer.h").write_text(f"// {node}\nstatic const int8_t buffer[{a[0].size}] = {{\n {cells}\n}};\n")
    assert np.array_equal(dump_of(read_archive(tmp_path / "layer.h"), SIDE).arrays[name], a[:1])


def test_questions_and_refusals(tmp_path: Path) -> None:
    name = next(iter(VALUES))
    with pytest.raises(InputError, match=r"has shape \[3, 1, 7, 3\]; the tensor has"):
        read({name: np.zeros((3, 1, 7, 3), np.int8)})
    with pytest.raises(OptionError, match="layout 'chwn' of a dump; allowed are nhwc, nchw"):
        DumpOptions(layout="chwn")
    (tmp_path / "words.hex").write_text("0000zz00\n")
    with pytest.raises(InputError, match="'0000zz00' is no hexadecimal word"):
        read_archive(tmp_path / "words.hex")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="contains no dump"):
        read_archive(tmp_path / "empty")
    with pytest.raises(UsageError, match="is not a dump"):
        dumps(str(DIGITS), DIGITS)
    np.save(tmp_path / "x.npy", np.zeros((3, 1, 99), np.int8))
    with pytest.raises(InputError, match="no tensor is called"):
        dump_of(read_archive(tmp_path / "x.npy"), SIDE)


FORMS = (
    *("bin_per_layer", "bin_per_sample", "channels_padded_80.npz", "codes_float32.npz", "hex_text", "int32.npz"),
    *("codes_float32_nchw.npz", "extra_arrays.npz", "first_part.npz", "last_part.npz", "layer_N.npz", "log/array.h"),
    *("log/console.txt", "log/conv_4.csv", "memory/arena.bin", "names.npz", "names_sorted.npz", "nchw.npz"),
    *("npy_per_tensor", "numbers.npz", "one_sample_no_batch.npz", "real.npz", "tensor_numbers.npz", "uint8.npz"),
    *("underscores.npz", "bin_uint8_nchw"),
)
NEED_AN_OPTION = {"bin_uint8_nchw": DumpOptions(layout="nchw")}


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_boards_name_the_planted_fault(form: str) -> None:
    """All 26 forms; 25 of them without an option."""
    folder = data_path("cases", "dumps")
    model = data_path("models", "kws_ref_model.tflite")
    sides = [str(folder / form), model]
    for a, b in (sides, sides[::-1]):
        found = compare(a, b, str(folder / "input.npy"), dump=NEED_AN_OPTION.get(form, DumpOptions()))
        assert len(found.comparison.diverging) == 1
        worst = found.comparison.ranking[0]
        assert (worst.node, worst.channel) == ("CONV_2D_0_4", 20)


@pytest.mark.parametrize("name", ["tpu_mlir_real.npz", "tpu_mlir_codes.npz"])
def test_the_archives_of_tpu_mlir_differ_nowhere(name: str) -> None:
    folder = data_path("cases", "dumps")
    side = f"{data_path('models', 'kws_ref_model.tflite')}@tpu-mlir"
    table = (f"calibration_table={folder / 'vendor' / 'tpu_mlir_cali_table'}",)
    found = compare(
        str(folder / "vendor" / name), side, str(folder / "input.npy"), target=TargetOptions(settings=table)
    )
    assert found.is_equal
    assert len(found.comparison.tensors) == 16


def test_the_archive_of_compass_is_understood(tmp_path: Path) -> None:
    folder = data_path("cases", "dumps", "vendor")
    ranges = {}
    text = (folder / "compass_group_o.txt").read_text()
    for block in text.split("layer_id=")[1:]:
        rows = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
        scale = float(rows["layer_top_scale"].strip("[]"))
        low, high = json.loads(rows["layer_top_range"])[0]
        ranges[rows["layer_top"].strip("[]").removesuffix("_0")] = [low / scale, high / scale]
    (tmp_path / "ranges.json").write_text(json.dumps(ranges))
    calibration = CalibrationOptions(ranges=str(tmp_path / "ranges.json"))
    side = f"{folder / 'compass_group.tflite'}@aipu"
    found = dumps(str(folder / "compass_quant"), side, calibration=calibration)
    assert len(found.understood.readings) == 11
    assert all("quantized values in float32" in r.encoding for r in found.understood.readings)


def test_level_indices_are_of_the_other_type_in_every_tensor() -> None:
    levels = {name: a.astype(np.int32) + 128 for name, a in VALUES.items()}
    first = next(iter(levels))
    levels[first] = np.full_like(levels[first], 100)
    assert (read(levels).arrays[first] == -28).all()
    assert (read({first: levels[first]}).arrays[first] == 100).all()
    mixed = {name: a.astype(np.int32) if i % 2 else levels[name] for i, (name, a) in enumerate(VALUES.items())}
    assert (read(mixed).arrays[first] == 100).all()
