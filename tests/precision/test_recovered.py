"""A search with recovery: what settings share changes nothing, and both fronts are told."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from tests.support.command import tflq, without_run
from tests.support.digits_problem import model, write_labeled
from tests.support.tracked import ROOT
from tflq.api.demo import demo_samples
from tflq.arrays import is_same
from tflq.converters.settings import parse_settings
from tflq.converters.settled import dequantized
from tflq.converters.targets import find_target
from tflq.precision.recover import RealSamples, RecoverySettings, prepare, recover_network
from tflq.precision.recovered import Recovering
from tflq.sampling import GivenSamples

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
TARGET = find_target("gap9-ne16")


def test_settings_that_share_layers_give_what_each_gives_alone() -> None:
    network = dequantized(model())
    samples = RealSamples(demo_samples(model().main).samples, model().main, network.main)
    fitted, aside = samples.take(0, 90), samples.take(90, 110)
    shared = Recovering(network, tuple(fitted), tuple(aside), RecoverySettings())
    found = []
    for last in (2, 4):
        widths = {0: 3, 1: 3, 2: last}
        rules = [f"{node}:weight_bits={bits}" for node, bits in widths.items()]
        settings = parse_settings(TARGET.settings, (), rules)
        found.append(shared.execution(TARGET, settings, widths))
        parts = (GivenSamples(fitted), GivenSamples(aside))
        alone = recover_network(prepare(network, network, parts), TARGET, settings).execution
        pairs = zip(found[-1].graph.tensors, alone.graph.tensors, strict=True)
        assert all(is_same(a.data, b.data) for a, b in pairs)
    first, second = (np.concatenate([next(iter(c.values())) for c in e.iterate(samples)]) for e in found)
    assert not np.array_equal(first, second)
    assert pickle.loads(pickle.dumps(shared)).options == shared.options


def test_the_command_shows_both_fronts(tmp_path: Path, quick: bool) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    write_labeled(folder, 60)
    pins = [option for node in range(5 if quick else 4) for option in ("--layer", f"{node}:weight_bits=8")]
    asked = ("-t", "gap9-ne16", *pins, "--widths", "2,8", "--at-least", 80, "--recover", "--take", "0:40")
    command = ("search", DIGITS, *asked, "-d", folder, "--json")
    one = tflq(*command, "-j", 1, cwd=tmp_path)
    assert one.status == 0, one.err
    if not quick:
        assert without_run(tflq(*command, "-j", 2, cwd=tmp_path).json) == without_run(one.json)
    assert one.json["recovered"] is True
    plain = {tuple(p["bits"]): p["sqnr_db"] for p in one.json["without_recovery"]["points"]}
    found = {tuple(p["bits"]): p["sqnr_db"] for p in one.json["points"]}
    narrow = min(found)
    assert found[narrow] > plain[narrow]


def test_recovery_needs_samples(tmp_path: Path) -> None:
    done = tflq(
        "search",
        DIGITS,
        "-t",
        "gap9-ne16",
        "--recover",
        "--min-sqnr",
        9,
        cwd=tmp_path,
    )
    assert done.status == 2
    assert "name them with --data or --input" in done.err
