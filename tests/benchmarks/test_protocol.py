"""Numbers as devices write them."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.benchmarks.protocol import agree, load_commands, parse_results, results_line


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("m-results-[0.996,0.000]", ("0.996", "0.000")),
        ("m-results-[0.5,0.5,]", ("0.5", "0.5")),  # as the reference device of vww01 ends its line
        ("m-results-[-1.250]", ("-1.250",)),
        ("m-results-[]", None),
        ("m-results-[0.996", None),
        ("m-results-[abc]", None),
        ("m-lap-us-7", None),
    ],
)
def test_results(line: str, texts: tuple[str, ...] | None) -> None:
    assert parse_results(line) == texts


def test_a_device_may_round_or_cut_off() -> None:
    values = np.array([0.99609375, 0.001953125], np.float32)
    assert results_line(values) == "m-results-[0.996,0.002]"
    assert agree(values, ("0.996", "0.002"))
    assert agree(values, ("0.996", "0.001"))
    assert agree(values, ("0.99609", "0.00195"))
    assert not agree(values, ("0.997", "0.002"))
    assert not agree(values, ("0.996", "0.003"))
    assert not agree(values, ("0.996",))
    assert agree(np.array([-0.0019], np.float32), ("-0.001",))


def test_commands_stay_below_80_characters() -> None:
    data = bytes(range(256))
    commands = load_commands(data)
    assert commands[0] == "db load 256"
    assert max(map(len, commands)) < 80
    assert bytes.fromhex("".join(command.removeprefix("db ") for command in commands[1:])) == data
