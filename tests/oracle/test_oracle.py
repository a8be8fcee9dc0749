"""The oracle returns what TFLite computes: against golden data of another run, and one package against the other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import small_models
from tests.support.data import data_path
from tflq.errors import InputError, MissingExtraError, OptionError, OracleError
from tflq.oracle import Oracle, OracleIdentity
from tflq.oracle.package import is_installed

PAIR = np.array([[[1, 2, 3]], [[4, 5, 6]]], np.int8)


@pytest.fixture(scope="module", params=["litert", "tensorflow"])
def each_oracle(request):
    if not is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    with Oracle(request.param) as judge:
        yield judge


@pytest.fixture(scope="module")
def kws():
    return data_path("models", "kws_ref_model.tflite").read_bytes()


@pytest.fixture(scope="module")
def clips():
    files = sorted(data_path("datasets", "kws01").glob("*.bin"))[:16]
    return np.stack([np.fromfile(file, np.int8).reshape(1, 49, 10, 1) for file in files])


def test_kws_equals_golden_outputs(each_oracle, kws, clips):
    golden = np.load(data_path("golden", "gap9", "kws_ref_model.ne16.npz"))
    run = each_oracle.run(kws, [golden["input"][:, None]])
    assert (golden["input"] == clips[:4, 0]).all()
    assert (run.outputs[0][:, 0] == golden["tflite_output"]).all()
    assert run.unavailable == {}
    assert run.ragged == {}


def test_every_tensor_but_the_constants(oracle, kws, clips):
    run = oracle.run(kws, [clips])
    assert set(run.tensors) == set(run.details) - run.model.constants == {0, *range(22, 35)}
    assert all(run.tensors[index].shape == (16, *run.details[index].shape) for index in run.tensors)
    assert (run.tensors[0] == clips).all()


def test_intermediate_tensors_are_of_their_own_sample(oracle, kws, clips):
    whole = oracle.run(kws, [clips])
    for number in (3, 11):
        alone = oracle.run(kws, [clips[number : number + 1]])
        assert all((alone.tensors[index][0] == whole.tensors[index][number]).all() for index in whole.tensors)


def test_intermediate_tensors_explain_each_other(oracle, kws, clips):
    run = oracle.run(kws, [clips])
    (flat,) = (index for index, tensor in run.details.items() if "flatten/Reshape" in tensor.name)
    pooled = flat - 1
    assert (run.tensors[flat].reshape(16, 64) == run.tensors[pooled].reshape(16, 64)).all()
    assert len(np.unique(run.tensors[flat].reshape(16, 64), axis=0)) == 16


def test_both_packages_agree_on_every_tensor(each_oracle, oracle, kws, clips):
    ours, theirs = oracle.run(kws, [clips[:4]]), each_oracle.run(kws, [clips[:4]])
    assert set(ours.tensors) == set(theirs.tensors)
    assert all((ours.tensors[index] == theirs.tensors[index]).all() for index in ours.tensors)


def test_chunks_do_not_change_results(oracle, kws, clips):
    chunks = list(oracle.iterate(kws, [clips], chunk_bytes=250_000))
    whole = oracle.run(kws, [clips])
    assert len(chunks) > 3
    assert [chunk.start for chunk in chunks] == list(np.cumsum([0, *(chunk.samples for chunk in chunks)])[:-1])
    for index, expected in whole.tensors.items():
        assert (np.concatenate([chunk.tensors[index] for chunk in chunks]) == expected).all()


def test_outputs_alone_and_chosen_tensors(oracle, kws, clips):
    whole = oracle.run(kws, [clips[:2]])
    outputs = oracle.run(kws, [clips[:2]], tensors="outputs")
    chosen = oracle.run(kws, [clips[:2]], tensors=[22, 16, 99])
    assert set(outputs.tensors) == {34}
    assert (outputs.tensors[34] == whole.tensors[34]).all()
    assert (chosen.tensors[22] == whole.tensors[22]).all()
    assert (chosen.tensors[16][0] == chosen.tensors[16][1]).all()  # a constant, asked for by index
    assert set(chosen.unavailable) == {99}


def test_batch_axis_is_resized(oracle, kws, clips):
    run = oracle.run(kws, [clips[:4].reshape(1, 4, 49, 10, 1)])
    alone = oracle.run(kws, [clips[:4]])
    assert (run.details[34].shape, alone.details[34].shape) == ((4, 12), (1, 12))
    assert (run.outputs[0][0] == alone.outputs[0][:, 0]).all()


def test_details_state_the_quantization(oracle, kws):
    model = oracle.describe(kws)
    tensor = model.tensors[model.inputs[0]]
    assert (tensor.dtype, tensor.zero_points, tensor.shape_signature) == ("int8", (83,), (-1, 49, 10, 1))
    assert tensor.scales == (float(np.float32(0.5847029)),)


def test_optimized_and_delegated_kernels_state_what_they_cannot_show(kws, clips):
    with Oracle(kernels="AUTO") as auto, Oracle(kernels="BUILTIN") as builtin:
        assert set(builtin.run(kws, [clips]).tensors) == {0, *range(22, 35)}
        run = auto.run(kws, [clips])
        assert set(run.tensors) == {0, 34}
        assert set(run.unavailable) == set(range(22, 34))
        assert "XNNPACK" in run.unavailable[22]


def test_state_is_cleared_or_carried_on(each_oracle):
    ones = np.ones((3, 1, 1, 1), np.float32)
    model = small_models.running_sum()
    assert each_oracle.run(model, [ones]).outputs[0].ravel().tolist() == [1, 1, 1]
    assert each_oracle.run(model, [ones], state="stream").outputs[0].ravel().tolist() == [1, 2, 3]
    assert each_oracle.run(model, [ones], state="stream").outputs[0].ravel().tolist() == [1, 2, 3]


def test_stream_goes_on_over_chunks_and_refuses_an_interruption(oracle):
    ones = np.ones((3, 1, 1, 1), np.float32)
    model = small_models.running_sum()
    chunks = oracle.iterate(model, [ones], state="stream", chunk_bytes=1)
    assert [chunk.outputs[0].item() for chunk in chunks] == [1, 2, 3]
    chunks = oracle.iterate(model, [ones], state="stream", chunk_bytes=1)
    next(chunks)
    oracle.run(small_models.add(), [PAIR, PAIR])
    with pytest.raises(OracleError, match="state is lost"):
        next(chunks)


def test_state_outside_tensors_is_cleared_too(each_oracle):
    sizes = np.array([[2], [2]], np.int32)
    first, second = each_oracle.run(small_models.random_vector(), [sizes]).outputs[0]
    assert (first == second).all()
    first, second = each_oracle.run(small_models.random_vector(), [sizes], state="stream").outputs[0]
    assert (first != second).all()


def test_shapes_that_differ_between_samples(oracle):
    run = oracle.run(small_models.random_vector(), [np.array([[2], [3], [0]], np.int32)])
    assert [array.shape for array in run.ragged[1]] == [(2,), (3,), (0,)]
    assert (run.sample(1, 1)[:2] == run.sample(1, 0)).all()


def test_strings_keep_their_bytes(each_oracle):
    words = np.array([[b"one", b"", b"nul\0\0"]], object)
    run = each_oracle.run(small_models.pick_string(), [words, np.array([[2]], np.int32)])
    assert run.outputs[0].tolist() == [[b"nul\0\0"]]
    assert run.tensors[0].tolist() == words.tolist()


def test_int4_constants_come_unpacked(each_oracle):
    run = each_oracle.run(small_models.int4_weights(), [np.array([[[1, 2]]], np.int8)], tensors=[1, 2])
    assert run.tensors[1].tolist() == [[[1, -2], [3, 7]]]
    assert run.outputs[0].tolist() == [[[-3, 17]]]


def test_resource_is_unavailable_with_the_reason(oracle):
    model = small_models.one_operator("VAR_HANDLE", [{"shape": [], "type": "RESOURCE"}], [], [0])
    assert "resource" in oracle.run(model, []).unavailable[0]


def test_signatures_by_name(oracle):
    model = data_path("corpus", "ai_edge_quantizer", "two_signatures.tflite").read_bytes()
    three = np.full((1, 1), 3, np.float32)
    assert oracle.describe(model).signatures == ("add", "multiply")
    assert oracle.run(model, {"x": three}, signature="add").outputs[0].item() == 13
    assert oracle.run(model, {"x": three}, signature="multiply").outputs[0].item() == 30
    with pytest.raises(OracleError, match="no signature 'divide'; the model has add, multiply"):
        oracle.describe(model, signature="divide")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([PAIR], "1 input arrays: the model takes 2"),
        ([PAIR, PAIR[:1]], "the first axis must be the samples"),
        ([PAIR[:0], PAIR[:0]], "at least one"),
        ([PAIR, PAIR.astype(np.float32)], "float32 given, the model takes int8"),
        ([PAIR, PAIR[..., :2]], r"samples of shape \[1, 2\] given, the model takes \[1, 3\]"),
        ({"x": PAIR}, "the model takes 0:t0, 1:t1"),
    ],
)
def test_inputs_that_do_not_fit(oracle, inputs, message):
    with pytest.raises(InputError, match=message):
        oracle.run(small_models.add(), inputs)


def test_fixed_shapes_give_way_on_request(oracle):
    wide = np.ones((1, 2, 5), np.int8)
    assert (oracle.run(small_models.add(), [wide, wide], resize=True).outputs[0] == 2 * wide).all()


def test_identity_names_package_version_and_kernels(each_oracle):
    identity = each_oracle.identity
    assert isinstance(identity, OracleIdentity)
    package, version, kernels = str(identity).split()
    assert package in ("ai-edge-litert", "tensorflow")
    assert version[0].isdigit()
    assert kernels == "BUILTIN_REF"


def test_timing_is_of_invocations(oracle, kws, clips):
    timing = oracle.time(kws, [clips], 20)
    assert 0 < timing.min_s <= timing.median_s < 1
    assert timing.invocations == 20


def test_missing_packages_name_the_extra(monkeypatch):
    monkeypatch.setattr("tflq.oracle.package.is_installed", lambda name: False)
    with pytest.raises(MissingExtraError, match=r"ai-edge-litert or tensorflow.*pip install tflq\[litert\]"):
        Oracle()
    with pytest.raises(MissingExtraError, match=r"pip install tflq\[tensorflow\]"):
        Oracle("tensorflow")


def test_options_outside_their_limits():
    for wrong in ({"package": "tflm"}, {"kernels": "FAST"}, {"threads": 0}, {"timeout_s": 0}):
        with pytest.raises(OptionError):
            Oracle(**wrong)


def test_unknown_state_and_tensors_are_refused(oracle):
    with pytest.raises(OptionError, match="independent, stream exist"):
        oracle.run(small_models.add(), [PAIR, PAIR], state="shared")
    with pytest.raises(OptionError, match="all, outputs and indices exist"):
        oracle.run(small_models.add(), [PAIR, PAIR], tensors="some")
