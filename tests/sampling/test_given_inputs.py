"""Files become samples, or one line that says what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.errors import InputError
from tflq.graph import Affine, DType, Graph, GraphBuilder
from tflq.sampling import given_inputs

SHAPE = (1, 2, 3)
X = np.arange(24, dtype=np.int8).reshape(4, 1, 2, 3)


def graph_of(*inputs: tuple[str, DType, Affine | None]) -> Graph:
    builder = GraphBuilder()
    tensors = [builder.input(name, SHAPE, dtype, quantization) for name, dtype, quantization in inputs]
    return builder.build([builder.add("abs", [t], SHAPE, DType.INT8) for t in tensors])


INT8 = graph_of(("x", DType.INT8, Affine.per_tensor(np.float32(0.5), 3)))
FLOAT = graph_of(("x", DType.FLOAT32, None))
TWO = graph_of(("x", DType.INT8, None), ("y=1", DType.INT8, None))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(*files: str, graph: Graph = INT8, real: bool = False) -> list[np.ndarray]:
    return given_inputs(graph, files, real=real).take(0, 100)


@pytest.mark.parametrize("shape", [(4, 1, 2, 3), (4, 2, 3)])
def test_npy_with_or_without_the_batch_axis(shape: tuple[int, ...]) -> None:
    np.save("x.npy", X.reshape(shape))
    for text in ("x.npy", "x=x.npy"):
        (found,) = read(text)
        assert found.shape == X.shape
        assert found.tobytes() == X.tobytes()


def test_one_sample_needs_no_sample_axis() -> None:
    np.save("x.npy", X[2])
    assert read("x.npy")[0].tolist() == X[2:3].tolist()


def test_big_endian_arrays_are_turned() -> None:
    np.save("x.npy", np.ones(SHAPE, ">f4"))
    (found,) = read("x.npy", graph=FLOAT)
    assert found.dtype == np.float32
    assert (found == 1).all()


def test_npz_by_names() -> None:
    np.savez("both.npz", **{"x": X, "y=1": -X, "labels": np.arange(4)})
    assert [a.tolist() for a in read("both.npz", graph=TWO)] == [X.tolist(), (-X).tolist()]
    assert read("x=both.npz")[0].tolist() == X.tolist()
    np.savez("one.npz", anything=X)
    assert read("one.npz")[0].tolist() == X.tolist()


def test_raw_bytes_and_folders_of_them() -> None:
    Path("x.bin").write_bytes(X.tobytes())
    assert read("x.bin")[0].tolist() == X.tolist()
    Path("folder").mkdir()
    for row, name in enumerate("bacd"):
        Path("folder", f"{name}.bin").write_bytes(X[row].tobytes())
    Path("folder", "y_labels.csv").write_text("")
    assert read("folder")[0].tolist() == X[[1, 0, 2, 3]].tolist()


def test_names_may_hold_an_equals_sign() -> None:
    np.save("x.npy", X)
    np.save("y.npy", -X)
    assert [a.tolist() for a in read("y=1=y.npy", "x=x.npy", graph=TWO)] == [X.tolist(), (-X).tolist()]


def test_real_numbers_round_as_tflite_does_and_clip() -> None:
    real = np.array([0.25, -0.25, 0.2499, 62.0, 62.3, -1000.0], np.float64).reshape(SHAPE)
    np.save("x.npy", real)
    given = given_inputs(INT8, ["x.npy"], real=True)
    assert given.arrays[0].ravel().tolist() == [4, 2, 3, 127, 127, -128]
    assert given.clipped == 2


def test_real_numbers_for_a_float_input_stay() -> None:
    np.save("x.npy", np.full(SHAPE, 0.5))
    assert (read("x.npy", graph=FLOAT, real=True)[0] == np.float32(0.5)).all()


def save_objects() -> str:
    np.save("o.npy", np.array([{}], object), allow_pickle=True)
    return "o.npy"


def save_bytes(name: str, data: bytes) -> str:
    Path(name).write_bytes(data)
    return name


def save(array: np.ndarray) -> str:
    np.save("a.npy", array)
    return "a.npy"


def cut_npy() -> str:
    return save_bytes("cut.npy", Path(save(X)).read_bytes()[:-5])


def cut_npz() -> str:
    np.savez("whole.npz", x=X)
    return save_bytes("cut.npz", Path("whole.npz").read_bytes()[:100])


REFUSED = {
    "no file": (lambda: "none.npy", INT8, r"none\.npy: no such file"),
    "a folder called .npy": (lambda: Path("d.npy").mkdir() or "x=d.npy", INT8, r"contains no \.bin file"),
    "empty": (lambda: save_bytes("e.npy", b""), INT8, r"e\.npy: is not a \.npy file, or is truncated"),
    "cut .npy": (cut_npy, INT8, r"cut\.npy: is not a \.npy file, or is truncated"),
    "cut .npz": (cut_npz, INT8, r"cut\.npz: is not a \.npz file, or is truncated"),
    "text": (lambda: save_bytes("t.npy", b"hello"), INT8, r"t\.npy: "),
    "pickled objects": (save_objects, INT8, r"o\.npy: contains Python objects"),
    "another ending": (
        lambda: save_bytes("x.txt", b"1"),
        INT8,
        r"x\.txt: the file's name must end in \.npy, \.npz, \.bin",
    ),
    "dtype": (lambda: save(X.astype(np.float32)), INT8, r"needs int8; the array is float32; real"),
    "dtype of the same size": (lambda: save(X.view(np.uint8)), INT8, r"needs int8; the array is uint8"),
    "shape": (lambda: save(X.reshape(4, 3, 2)), INT8, r"needs shape \[1, 2, 3\].*the array has \[4, 3, 2\]"),
    "no sample": (lambda: save(np.zeros((0, 1, 2, 3), np.int8)), INT8, r"a\.npy: "),
    "NaN": (lambda: save(np.full(SHAPE, np.nan, np.float32)), FLOAT, r"has 6 NaN, the first in sample 0"),
    "bytes left over": (
        lambda: save_bytes("x.bin", b"1234567"),
        INT8,
        r"7 bytes, which is not a multiple of the 6 bytes",
    ),
    "empty .bin": (lambda: save_bytes("x.bin", b""), INT8, r"x\.bin: the file is empty"),
    "unknown name": (lambda: "z=" + save(X), INT8, r"no input is called 'z'; available: 'x'"),
    "no name for two inputs": (lambda: save(X), TWO, r"several inputs; write NAME=FILE with one of x, y=1"),
    "one of two inputs": (lambda: "x=" + save(X), TWO, r"no samples for input 'y=1'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, graph, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        read(make(), graph=graph)


def test_refused_twice_and_different_counts() -> None:
    np.save("x.npy", X)
    np.save("y.npy", X[:2])
    with pytest.raises(InputError, match=r"input 'x' already has samples, of x\.npy"):
        read("x.npy", "x=y.npy")
    with pytest.raises(InputError, match=r"different numbers of samples: 'x' 4, 'y=1' 2"):
        read("x=x.npy", "y=1=y.npy", graph=TWO)


def test_npz_without_the_inputs_name() -> None:
    np.savez("z.npz", a=X, b=X)
    with pytest.raises(InputError, match=r"none of its arrays \(a, b\) has the name of an input \(x\)"):
        read("z.npz")
    with pytest.raises(InputError, match="contains no array 'x'; available: a, b"):
        read("x=z.npz")


def test_narrow_types_and_indices_have_a_range() -> None:
    np.save("x.npy", np.full(SHAPE, 8, np.int8))
    with pytest.raises(InputError, match=r"is 8 in sample 0; allowed is -8\.\.7: the type is int4"):
        read("x.npy", graph=graph_of(("x", DType.INT4, None)))
    builder = GraphBuilder()
    table = builder.constant("table", np.zeros((5, 7), np.float32))
    x = builder.input("x", (2,), DType.INT32)
    graph = builder.build([builder.add("gather", [table, x], (2, 7), DType.FLOAT32, axis=0)])
    np.save("i.npy", np.array([[0, 4], [-1, 0]], np.int32))
    with pytest.raises(InputError, match=r"is -1 in sample 1; allowed is 0\.\.4: operator 0 \(gather"):
        read("i.npy", graph=graph)


def test_real_numbers_refused() -> None:
    np.save("n.npy", np.full(SHAPE, np.nan))
    with pytest.raises(InputError, match="NaN"):
        read("n.npy", real=True)
    np.save("x.npy", np.ones(SHAPE))
    with pytest.raises(InputError, match="has no scale"):
        read("x.npy", graph=graph_of(("x", DType.INT8, None)), real=True)
    Path("x.bin").write_bytes(X.tobytes())
    with pytest.raises(InputError, match="real needs"):
        read("x.bin", real=True)
