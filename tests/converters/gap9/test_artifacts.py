"""The files: valid by their schema, equal to the vendor's constants, read back to the same graph, run by TFLite."""

from __future__ import annotations

import io
import json
import re

import jsonschema
import numpy as np
import pytest

from tests.support.gap9_golden import CASES, Golden, golden, quantized
from tests.support.gap9_nets import Net
from tests.support.gap9_read_back import read_graph
from tflq.arrays import is_same
from tflq.converters.gap9.emit.hardware import config0, multiplied_bias
from tflq.converters.gap9.emit.tflite_view import tflite_view
from tflq.converters.targets import find_target
from tflq.converters.tflite import model_from_bytes
from tflq.errors import FormatError
from tflq.interpreter import lower
from tflq.schemas.gap9 import quantization_schema, specification

NE16 = "gap9-ne16"


def emitted(case: Golden) -> dict[str, bytes]:
    target = "gap9-sq8" if case.entries["scheme"] == "sq8" else "gap9-ne16"
    return dict(find_target(target).emit(case.graph, case.model))


@pytest.fixture(params=CASES, ids=lambda case: ".".join(case))
def case(request: pytest.FixtureRequest) -> Golden:
    return golden(*request.param)


def test_json_follows_its_schema(case: Golden) -> None:
    content = json.loads(emitted(case)["quantization.json"])
    jsonschema.Draft202012Validator.check_schema(quantization_schema())
    jsonschema.validate(content, quantization_schema())
    assert str(case.model.source).rpartition("/")[2] == content["source"]


def test_npz_holds_the_vendors_constants(case: Golden) -> None:
    with np.load(io.BytesIO(emitted(case)["constants.npz"])) as file:
        for node in case.nodes():
            if node.operator in ("conv2d", "linear"):
                weights, bias = node.outer["inputs"][1][0], node.outer["inputs"][2][0]
                assert np.array_equal(file[f"{node.name}/weights"], case.arrays[f"const/{weights}"])
                assert np.array_equal(file[f"{node.name}/bias"], case.arrays[f"const/{bias}"])
                expected = node.fields["quant"]["mul_biases_q"]
                assert file[f"{node.name}/multiplier"].tolist() == expected["value"]
                assert file[f"{node.name}/shift"].tolist() == expected["norm"]


def test_files_do_not_depend_on_the_run(case: Golden) -> None:
    assert emitted(case) == emitted(case)


def test_reads_back_to_the_same_graph(case: Golden) -> None:
    read = read_graph(emitted(case))
    for ours, again in zip(case.graph.tensors, read.tensors, strict=True):
        assert is_same(ours, again), ours.name
    lowered = lower(read, "gap9")
    for ours, again in zip(case.graph.nodes, lowered.nodes, strict=True):
        assert is_same(ours.params, again.params), ours.name
        assert (ours.operator, ours.inputs, ours.outputs, ours.name) == (
            again.operator,
            again.inputs,
            again.outputs,
            again.name,
        )
        assert dict(ours.attributes) == dict(again.attributes)
    assert (read.inputs, read.outputs) == (case.graph.inputs, case.graph.outputs)


def test_tflite_file_has_the_new_types(case: Golden) -> None:
    written = model_from_bytes(emitted(case)["model.tflite"], "written").main
    given, source = written.tensors[written.inputs[0]], case.graph.tensors[case.graph.inputs[0]]
    assert given.affine.scale[0] == np.float32(source.affine.scale[0])
    shift = 0 if source.affine.signed else 128
    assert given.affine.zero_point[0] == source.affine.zero_point[0] - shift


def test_c_arrays_hold_the_binary(case: Golden) -> None:
    files = emitted(case)
    source, binary = files["constants.c"].decode(), files["hardware.bin"]
    entries = json.loads(files["quantization.json"])["artefacts"]["hardware"]["entries"]
    assert len({e["name"] for e in entries}) == len(entries)
    for entry in entries:
        found = re.search(rf"{entry['name']}\[\d+\][^{{]*{{([^}}]*)}}", source)
        assert found is not None
        numbers = [int(n.replace("(int32_t)", ""), 0) for n in re.findall(r"[^,\s]+", found[1])]
        element = "uint8" if entry["element"] == "bits" else entry["element"]
        data = binary[entry["offset"] : entry["offset"] + entry["size_bytes"]]
        assert entry["offset"] % 16 == 0
        assert np.array_equal(np.array(numbers).astype(element), np.frombuffer(data, element))
        assert f"{entry['name']}[" in files["constants.h"].decode()


@pytest.mark.parametrize(("scheme", "first", "last"), [("ne16_all", "O,I,H,W", [64, 1, 10, 4]),
                                                       ("sq8", "O,H,W,I", [64, 10, 4, 1])])  # fmt: skip
def test_axes_of_weights(scheme: str, first: str, last: list[int]) -> None:
    """NE16 has channels of the input in front of the window, SQ8 behind it; KWS' first filter is 10 x 4 of one."""
    files = emitted(golden("kws_ref_model", scheme))
    entries = json.loads(files["quantization.json"])["artefacts"]["hardware"]["entries"]
    streams = [e for e in entries if e["kind"] == "weights_stream"]
    assert {len(e["shape"]): e["layout"] for e in streams} == {4: first, 2: "O,I"}
    assert streams[0]["shape"] == last


def test_jobs_of_the_accelerator() -> None:
    case = golden("kws_ref_model", "ne16_all")
    values = {n.name: config0(case.graph, i) for i, n in enumerate(case.graph.nodes) if n.operator.endswith("conv_2d")}
    fixed = 7 | 1 << 4 | 1 << 15 | 3 << 24
    assert values["CONV_2D_0_2"] == fixed | 2 << 5
    assert values["DEPTHWISE_CONV_2D_0_1"] == fixed | 1 << 5
    index = next(i for i, n in enumerate(case.graph.nodes) if n.operator == "fully_connected")
    assert config0(case.graph, index) == fixed | 2 << 5 | 1 << 7 | 1 << 23


def test_multiplied_bias_replaces_the_rounding() -> None:
    case = golden("kws_ref_model", "ne16_all")
    for node in case.graph.nodes:
        if node.operator == "conv_2d":
            rescaling = node.params.filter.rescaling
            accumulators = np.arange(-3000, 3000, 7)[:, None] + np.zeros(len(rescaling.bias), np.int64)
            hardware = (accumulators * rescaling.mul_bias.multiplier + multiplied_bias(node)) >> rescaling.shift
            clipped = np.clip(hardware, rescaling.minimum, rescaling.maximum)
            assert np.array_equal(clipped, rescaling.exact(accumulators))


@pytest.mark.parametrize("damage", ["missing", "json", "short", "key"])
def test_damaged_files_are_refused(damage: str) -> None:
    files = emitted(golden("concat", "ne16"))
    if damage == "missing":
        del files["hardware.bin"]
    elif damage == "json":
        files["quantization.json"] = files["quantization.json"][:-10]
    elif damage == "short":
        files["hardware.bin"] = files["hardware.bin"][:100]
    else:
        files["quantization.json"] = b"{}"
    with pytest.raises(FormatError) as caught:
        read_graph(files)
    assert "\n" not in str(caught.value)


def test_specification_names_the_limits() -> None:
    weights = specification()["weights"]
    assert isinstance(weights, dict)
    assert weights["ne16"]["minimum_bits"] == 2


def test_the_tflite_view_of_a_curve_that_is_an_output_and_is_read() -> None:
    """TFLite's LOGISTIC has one output type; a QUANTIZE follows for its reader, and both outputs keep their places."""
    net = Net()
    y = net.unary("logistic", net.conv(net.x, (-4.0, 4.0)), (0.0, 0.99609375))
    graph = lower(quantized(net.model(y, net.conv(y, (-4.0, 4.0))), "gap9-sq8", [], []), "gap9")
    view = tflite_view(graph)
    assert [view.tensors[t].name for t in view.outputs] == [graph.tensors[t].name for t in graph.outputs]
    writers = [view.nodes[view.producers()[t]].operator for t in view.outputs]
    assert writers == ["logistic", "conv_2d"]


def test_the_tflite_view_of_folded_padding() -> None:
    net = Net()
    amounts = net.builder.constant("p", np.array([[0, 0], [1, 0], [0, 1], [0, 0]], np.int32))
    padded = net.add("pad", [net.x, amounts], (1, 9, 9, 4), (-1.0, 1.0))
    graph = lower(quantized(net.model(net.conv(padded, (-4.0, 4.0), (2, 2), padding="valid")), NE16, [], []), "gap9")
    view = tflite_view(graph)
    constants = [t for t in view.tensors if t.data is not None]
    assert [t.shape for t in constants] == [t.data.shape for t in constants if t.data is not None]
    (added,) = (n for n in view.nodes if n.operator == "pad")
    assert view.tensors[added.inputs[1]].data.tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]
