"""Programs of networks that keep state: the struct, its start, and a stream of samples against tflq and TFLite."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.interpreter.tflite.test_svdf import svdf_graph
from tests.support import c_compiler
from tests.support.command import tflq
from tests.support.lstm import Lstm, lstm_graph
from tests.support.streaming import draw_streaming_network
from tflq.converters.tflite import write_model
from tflq.graph import Affine, Attribute, DType, Graph, GraphBuilder, Model
from tflq.oracle import Oracle

INT8, RESOURCE = DType.INT8, DType.RESOURCE
FRAME = Affine.per_tensor(np.float32(0.05), -3)
SCORE = Affine.per_tensor(np.float32(0.07), 4)
NAMES = ("linux", "1st été */")
SAMPLES = 7


def handle(b: GraphBuilder, name: str) -> int:
    return b.add("var_handle", [], (1,), RESOURCE, container="", shared_name=name)


def initial(values: dict[str, np.ndarray]) -> Graph:
    b = GraphBuilder("start")
    for name, data in values.items():
        b.node("assign_variable", [handle(b, name), b.constant(name, data)], [])
    return b.build([])


def wake_word(seed: int) -> Model:
    """The last four frames through a dense layer, whose scores are summed up: two variables, one of them read twice."""
    rng = np.random.default_rng(seed)
    b = GraphBuilder("wake word")
    x = b.input("x", (1, 1, 8), INT8, FRAME)
    b.node("call_once", [], [], init_subgraph_index=1)
    frames, scores = handle(b, NAMES[0]), handle(b, NAMES[1])
    old = b.add("read_variable", [frames], (1, 3, 8), INT8, FRAME)
    window = b.add("concatenation", [old, x], (1, 4, 8), INT8, FRAME, axis=1, fused_activation_function="none")
    ends = [b.constant(n, np.array(v, np.int32)) for n, v in (("b", [0, 1, 0]), ("e", [1, 4, 8]), ("s", [1, 1, 1]))]
    kept = b.add("strided_slice", [window, *ends], (1, 3, 8), INT8, FRAME)
    b.node("assign_variable", [frames, kept], [])
    weights = b.constant("w", rng.integers(-127, 128, (5, 32), np.int8), Affine.per_tensor(np.float32(0.01), 0))
    bias = b.constant("bias", rng.integers(-999, 999, 5, np.int32), Affine.per_tensor(np.float32(0.0005), 0, 32))
    flat = b.add("reshape", [window, b.constant("shape", np.array([1, 32], np.int32))], (1, 32), INT8, FRAME)
    y = b.add("fully_connected", [flat, weights, bias], (1, 5), INT8, SCORE, fused_activation_function="none")
    before = b.add("read_variable", [scores], (1, 5), INT8, SCORE)
    total = b.add("add", [before, y], (1, 5), INT8, SCORE, fused_activation_function="none")
    b.node("assign_variable", [scores, total], [])
    after = b.add("read_variable", [scores], (1, 5), INT8, SCORE)
    start = initial({NAMES[0]: rng.integers(-128, 128, (1, 3, 8), np.int8), NAMES[1]: np.full((1, 5), 4, np.int8)})
    return Model([b.build([b.add("relu", [after], (1, 5), INT8, SCORE), before]), start])


def export(model: Model, folder: Path) -> dict[str, list[np.ndarray]]:
    """Write the program and return what each tensor must be, sample by sample."""
    write_model(model, folder / "m.tflite")
    done = tflq("export", folder / "m.tflite", "--program", "c99", "-n", str(SAMPLES), "-o", folder / "c", cwd=folder)
    assert (done.status, done.err) == (0, "")
    tensors = json.loads((folder / "c" / "index.json").read_text())["tensors"]
    content, found, at = (folder / "c" / "expected.bin").read_bytes(), {}, 0
    for _ in range(SAMPLES):
        for tensor in tensors:
            found.setdefault(tensor["name"], []).append(
                np.frombuffer(content, tensor["type"], tensor["bytes"] // np.dtype(tensor["type"]).itemsize, at)
            )
            at += tensor["bytes"]
    assert at == len(content)
    return found


def require_program(folder: Path, *flags: str) -> None:
    program = c_compiler.build(folder / "c", *flags)
    found = c_compiler.run(program, (folder / "c" / "samples.bin").read_bytes())
    assert found == (folder / "c" / "expected.bin").read_bytes()


def require_tflite(oracle: Oracle, folder: Path, expected: dict[str, list[np.ndarray]], model: Model) -> None:
    """Every tensor of the program is TFLite's, in a stream of the same samples."""
    shape = model.main.tensors[model.main.inputs[0]].shape
    x = np.frombuffer((folder / "c" / "samples.bin").read_bytes(), np.int8).reshape(SAMPLES, *shape)
    names = {tensor.name: t for t, tensor in enumerate(model.main.tensors)}
    judged = oracle.run((folder / "m.tflite").read_bytes(), [x], state="stream")
    resources = [t for t, tensor in enumerate(model.main.tensors) if tensor.dtype is RESOURCE]
    assert judged.unavailable == dict.fromkeys(resources, "a resource, which TFLite does not show")
    for name, rows in expected.items():
        assert np.array_equal(judged.tensors[names[name]].reshape(SAMPLES, -1), rows), name


@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_with_two_variables(oracle: Oracle, seed: int, tmp_path: Path) -> None:
    model = wake_word(seed)
    expected = export(model, tmp_path)
    assert len(expected) == 9
    require_tflite(oracle, tmp_path, expected, model)
    for flags in (("-O0",), ("-O3",), ("-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")):
        require_program(tmp_path, *flags)
    header = (tmp_path / "c" / "network.h").read_text()
    members = re.findall(r"^    int8_t (\w+)\[(\d+)\];", header, re.MULTILINE)
    assert members == [("linux_0", "24"), ("x1st_t_1", "5")]
    source = (tmp_path / "c" / "network.c").read_text()
    assert "static const int8_t linux_0_start[24]" in source  # assigned by CALL_ONCE's graph
    assert "memset(state->x1st_t_1, 4, sizeof" in source


def test_reset_begins_a_new_stream(tmp_path: Path) -> None:
    export(wake_word(1), tmp_path)
    main = tmp_path / "c" / "main.c"
    main.write_text(
        main.read_text().replace("network_run(&state", "network_reset(&state);\n        network_run(&state")
    )
    program = c_compiler.build(tmp_path / "c")
    samples = (tmp_path / "c" / "samples.bin").read_bytes()
    expected = (tmp_path / "c" / "expected.bin").read_bytes()
    size = len(expected) // SAMPLES
    found = c_compiler.run(program, samples)
    assert found[:size] == expected[:size]
    assert found[size:] != expected[size:]
    assert c_compiler.run(program, samples[:8] * 2) == expected[:size] * 2


def test_a_variable_without_start_and_a_constant_assigned(oracle: Oracle, tmp_path: Path) -> None:
    b = GraphBuilder("constants")
    x = b.input("x", (1, 4), INT8, FRAME)
    at, other = handle(b, "a"), handle(b, "b")
    b.node("assign_variable", [at, x], [])
    b.node("assign_variable", [other, b.constant("c", np.arange(4, dtype=np.int8)[None], FRAME)], [])
    reads = [b.add("read_variable", [h], (1, 4), INT8, FRAME) for h in (at, other)]
    y = b.add("add", reads, (1, 4), INT8, SCORE, fused_activation_function="none")
    model = Model([b.build([y])])
    require_tflite(oracle, tmp_path, export(model, tmp_path), model)
    require_program(tmp_path)


def refused(model: Model, folder: Path, *options: str) -> str:
    write_model(model, folder / "m.tflite")
    done = tflq("export", folder / "m.tflite", "--program", "c99", *options, "-o", "out", cwd=folder)
    assert not (folder / "out").exists()
    return done.refused()


def test_independent_samples_are_refused(tmp_path: Path) -> None:
    assert "runs its samples as one stream" in refused(wake_word(1), tmp_path, "--state", "independent")


def test_variables_that_are_no_numbers_are_refused_by_name(tmp_path: Path) -> None:
    b = GraphBuilder("table")
    x = b.input("x", (1, 4), INT8, FRAME)
    options: dict[str, Attribute] = {"table_id": 1, "key_dtype": "string", "value_dtype": "int64"}
    table = b.add("hashtable", [], (1,), RESOURCE, **options)
    size = b.add("hashtable_size", [table], (1,), DType.INT64)
    b.node("assign_variable", [handle(b, "v"), x], [])
    assert "HASHTABLE 'HASHTABLE_0_0' beside variables" in refused(Model([b.build([size])]), tmp_path)


def test_a_variable_of_two_shapes_is_refused(tmp_path: Path) -> None:
    b = GraphBuilder("shapes")
    x = b.input("x", (1, 4), INT8, FRAME)
    at = handle(b, "v")
    b.node("assign_variable", [at, x], [])
    y = b.add("read_variable", [at], (1, 4), INT8, FRAME)
    b.node("assign_variable", [at, b.constant("c", np.zeros((1, 2), np.int8), FRAME)], [])
    assert "variable /v holds int8[1, 4] and int8[1, 2]" in refused(Model([b.build([y])]), tmp_path)


@pytest.mark.parametrize("sizes", [(2, 7, 3, 2, 4), (2, 5, 40, 1, 6), (1, 4, 23, 3, 5)])
def test_svdf_keeps_its_state(oracle: Oracle, sizes: tuple[int, int, int, int, int], tmp_path: Path) -> None:
    model = Model([svdf_graph("int8", sizes, 5)])
    require_tflite(oracle, tmp_path, export(model, tmp_path), model)
    for flags in ("-O0", "-O3"):
        require_program(tmp_path, flags)


LSTMS = {
    "a sequence": Lstm(steps=9),
    "one step": Lstm(steps=0, cifg=True),
    "two sequences, projected": Lstm(batch=2, outputs=4, projection=True),
    "in time's order": Lstm(batch=2, time_major=True, cifg=True, clip=0.3, seed=3),
    "peephole": Lstm(steps=3, peephole=True, outputs=4, projection=True, seed=4),
    "normalized": Lstm(batch=2, steps=2, norm=True, seed=5),
}


@pytest.mark.parametrize("name", LSTMS)
def test_an_lstm_keeps_its_state(oracle: Oracle, name: str, tmp_path: Path) -> None:
    how = LSTMS[name]
    model = Model([lstm_graph("unidirectional_sequence_lstm" if how.steps else "lstm", how, "int8")])
    require_tflite(oracle, tmp_path, export(model, tmp_path), model)
    require_program(tmp_path, "-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    source = (tmp_path / "c" / "network.c").read_text()
    assert source.count("tanh_of_int16(") == 1  # each gate is computed in one place, whatever the steps


def test_an_lstm_of_real_numbers_is_refused(tmp_path: Path) -> None:
    model = Model([lstm_graph("unidirectional_sequence_lstm", Lstm(), "hybrid")])
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in refused(model, tmp_path)


def test_places_that_depend_on_state_are_refused(tmp_path: Path) -> None:
    """The first sample always meets the same place: only later ones show that it is data."""
    b = GraphBuilder("ring")
    x = b.input("x", (4,), DType.INT32)
    b.node("call_once", [], [], init_subgraph_index=1)
    at = handle(b, "place")
    place = b.add("read_variable", [at], (1,), DType.INT32)
    y = b.add("slice", [x, place, b.constant("size", np.ones(1, np.int32))], (1,), DType.INT32)
    rest = [b.constant(str(n), np.array([n], np.int32)) for n in (1, 4)]
    more = b.add("add", [place, rest[0]], (1,), DType.INT32, fused_activation_function="none")
    b.node("assign_variable", [at, b.add("floor_mod", [more, rest[1]], (1,), DType.INT32)], [])
    message = refused(Model([b.build([y]), initial({"place": np.array([2], np.int32)})]), tmp_path)
    assert "SLICE 'SLICE_0_3': which elements it reads depends on the data" in message


@pytest.mark.parametrize("seed", [1, 8, 21, 45])
def test_ordinary_layers_write_variables(seed: int, tmp_path: Path) -> None:
    """int8 networks of tests/support/streaming.py: variables that are outputs, written twice, read before and after."""
    graph = draw_streaming_network(seed)
    assert any(graph.tensors[t].is_variable for node in graph.nodes for t in node.outputs)
    export(Model([graph]), tmp_path)
    require_program(tmp_path, "-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
