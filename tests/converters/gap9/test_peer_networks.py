"""Networks that NNTool was run on: every type, constant and tensor; scripts/peer nntool draws new ones."""

from __future__ import annotations

import pytest
from peers.campaign import Verdict
from peers.nntool import judged
from peers.nntool_dump import Dump, Scheme

from tests.support.data import data_files, data_path

EQUAL = """acts.ne16 vk.ne16 vl.ne16 vc.ne16 cat3.ne16 unet.ne16 mm_splitss.ne16_16 tcn_1_41_mm.sq8 bilinear.sq8
mobilenet_v2_1_34.ne16_16 branches_1_43.ne16 two_inputs_1_44.ne16 inception_1_2_mm.ne16 vn.ne16 vp.sq8 m_pad.sq8
densenet_1_40.sq8 densenet_1_10.ne16 autoencoder_1_8_mm.ne16 mm_avgpad.ne16 se.ne16 twoin.ne16 conv1d_1_6_mm.ne16
mobilenet_v3_1_35.ne16 squeeze_excite_1_1_mm.ne16"""
FLAWED = "small.ne16 dwodd.sq8 reduces.sq8 m_tile.sq8 mm_avgpad.ne16_16 dwodd2.ne16 unet_1_39_mm.ne16"
"""Right only with numerics=nntool, each for its reason in docs/differences/gap9.md."""


def verdict(name: str, numerics: str) -> tuple[Verdict, int, str]:
    folder = data_path("cases", "gap9_networks")
    network, _, scheme = name.rpartition(".")
    settings = Scheme.of(scheme, f"numerics={numerics}")
    row = judged(folder / f"{network}.tflite", settings, Dump.read(folder / name), every=True)
    return row.verdict, row.checks, row.words


DUMPS = [path.name.removesuffix(".json.gz") for path in data_files("cases", "gap9_networks", pattern="*.json.gz")]


@pytest.mark.skipif(not DUMPS, reason="TFLQ_DATA is not set: no dumps of NNTool on this machine")
@pytest.mark.parametrize("name", [name for name in DUMPS if name not in (*EQUAL.split(), *FLAWED.split())])
def test_agrees(name: str) -> None:
    """All the others: both refuse a network, or every type, constant and tensor is equal."""
    found, _, words = verdict(name, "nntool")
    assert found.agrees, words


@pytest.mark.parametrize("numerics", ["exact", "nntool"])
@pytest.mark.parametrize("name", EQUAL.split())
def test_equal(name: str, numerics: str) -> None:
    found, checks, words = verdict(name, numerics)
    assert found is Verdict.EQUAL, words
    assert checks > 20


@pytest.mark.parametrize("name", FLAWED.split())
def test_flaws_of_the_tool(name: str) -> None:
    found, _, words = verdict(name, "nntool")
    assert found is Verdict.EQUAL, words
    assert verdict(name, "exact")[0] is Verdict.DIFFERS


@pytest.mark.parametrize("name", ["actalone.ne16", "actalone.sq8", "res.ne16_16", "m_gather.ne16", "m_gather.sq8"])
def test_what_the_tool_cannot_quantize(name: str) -> None:
    assert verdict(name, "nntool")[0] is Verdict.REFUSED_BY_BOTH
