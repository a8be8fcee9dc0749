"""Damaged IR files: one line with the file and the line, never a crash, a hang or silence."""

from __future__ import annotations

import random
import re
from xml.parsers import expat

import numpy as np
import pytest

from tests.converters.openvino.networks import image_network
from tests.support.openvino import as_model, converted
from tflq.converters.openvino.ir import Network
from tflq.converters.openvino.ir.elements import _Tree, parse
from tflq.converters.openvino.ir.files import network_from_bytes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.errors import FormatError, TflqError

BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<net name="&b;" version="11"><layers/><edges/></net>"""


@pytest.fixture(scope="module")
def files() -> tuple[bytes, bytes]:
    _, xml, weights = converted(as_model(image_network()))
    return xml, weights


def test_entities_are_refused() -> None:
    with pytest.raises(FormatError, match=r"^bomb.xml, line 2: a document type or entity is declared"):
        model_from_bytes(BOMB, b"", "bomb.xml")


def test_nesting_is_bounded() -> None:
    with pytest.raises(FormatError, match="more than 32 levels"):
        model_from_bytes(b"<a>" * 100_000, b"", "deep.xml")


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (rb'offset="64"', b'offset="999999999"', "lie outside the .bin"),
        (rb'offset="64"', b'offset="-4"', "offset is '-4'; a whole number of 0 or more"),
        (rb'size="4"', b'size="5"', r"size is 5 bytes; f32\[.*\] has 4"),
        (rb'levels="256"', b'levels="1"', "levels is 1; at least 2 are needed"),
        (rb'levels="256"', b'levels="x"', "levels is 'x'"),
        (rb'levels="256" ', b"", "attribute 'levels' is missing"),
        (rb'from-layer="0"', b'from-layer="9999"', "comes from output 0 of layer 9999, which does not exist"),
        (rb"<edge [^>]*/>", b"", "edges go to 0 of them|edges go to . of them"),
        (rb'<layer id="1" ', b'<layer id="0" ', "layer id 0 is used twice"),
        (rb'version="11"', b'version="7"', "IR version 7"),
        (rb"<net ", b"<model ", "no XML"),
        (rb"<dim>6</dim>", b"<dim>-1</dim>", "a dimension is open"),
        (rb'precision="FP32"', b'precision="FP7"', "precision FP7"),
        (rb'strides="1, 1"', b'strides="0, 0"', "all are 1 or more"),
        (rb'strides="1, 1" ', b"", "attribute 'strides' is missing"),
    ],
)
def test_one_change(files: tuple[bytes, bytes], pattern: bytes, replacement: bytes, message: str) -> None:
    xml, weights = files
    changed = re.sub(pattern, replacement, xml, count=1)
    assert changed != xml
    with pytest.raises(FormatError, match=message) as found:
        model_from_bytes(changed, weights, "net.xml")
    assert re.match(r"net\.xml, line \d+: ", str(found.value))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("pattern", "taken", "refused", "message"),
    [
        (rb'levels="256"', b'levels="999999999"', b'levels="1000000000"', "levels is '1000000000'; a whole number"),
        (rb'levels="256"', b'levels="2"', b'levels="1"', "levels is 1; at least 2 are needed"),
        (rb'levels="256"', b'levels="0256"', b'levels="+256"', "levels is '.256'; a whole number"),
        (rb'version="11"', b'version="10"', b'version="9"', "IR version 9; read are 10 and 11"),
        (rb'version="11"', b'version="11"', b'version="12"', "IR version 12; read are 10 and 11"),
        (rb'strides="1, 1"', b'strides=" 1 ,1"', b'strides="1, 1, 1"', "has 3 numbers; 2 small ones are needed"),
        (rb'<layer id="0"', b'<layer id="00"', b'<layer id="999999999999999999"', "comes from output 0 of layer 0"),
        (rb'<layer id="0"', b'<layer id=" 0 "', b'<layer id="0.0"', "id is '0.0'; a whole number of 0 or more"),
        (rb'from-port="0"', b'from-port="0"', b'from-port="1"', "comes from output 1 of layer 0, which does not exist"),
        (rb'to-port="0"', b'to-port="0"', b'to-port="-1"', "to-port is '-1'; a whole number of 0 or more"),
        (rb'<net name="small"', b'<net nome="small"', b'<net name="small" name="x"', "no XML: duplicate attribute"),
    ],
)
def test_what_is_just_taken(
    files: tuple[bytes, bytes], pattern: bytes, taken: bytes, refused: bytes, message: str
) -> None:
    xml, weights = files
    assert re.search(pattern, xml)
    model_from_bytes(re.sub(pattern, taken, xml, count=1), weights, "net.xml")
    with pytest.raises(FormatError, match=message):
        model_from_bytes(re.sub(pattern, refused, xml, count=1), weights, "net.xml")


def test_how_deep_and_how_long() -> None:
    assert parse(b"<a>" * 32 + b"</a>" * 32, "deep.xml").tag == "a"
    with pytest.raises(FormatError, match=r"^deep\.xml, line 2: more than 32 levels or 4194304 elements; no IR"):
        parse(b"<a>" * 32 + b"\n<a>" + b"</a>" * 33, "deep.xml")
    element = parse(b'<a n=" 12 " m="\xd9\xa3"><b/><c/><c/></a>', "few.xml")
    assert element.number("n") == 12
    assert element.whole("9" * 18, "it") == 10**18 - 1
    for text in ("9" * 19, "", "-1", "1e3", "\u0663"):
        with pytest.raises(FormatError, match=r"few.xml, line 1: it is '.*'; a whole number of 0 or more is allowed"):
            element.whole(text, "it")
    assert element.one("b").tag == "b"
    for tag, count in (("c", 2), ("d", 0)):
        with pytest.raises(FormatError, match=f"<a> has {count} <{tag}>; exactly 1 is allowed"):
            element.one(tag)
    with pytest.raises(FormatError, match="<a> has no attribute 'k'"):
        element.attribute("k")


def constant_of(shape: str, size: int, dims: tuple[int, ...], kind: str = "i8", weights: int = 64) -> Network:
    ports = "".join(f"<dim>{d}</dim>" for d in dims)
    xml = (
        f'<net name="n" version="11"><layers><layer id="0" name="c" type="Const"><data element_type="{kind}" '
        f'shape="{shape}" offset="8" size="{size}"/><output><port id="0" precision="I8">{ports}</port></output></layer>'
        "</layers><edges/></net>"
    )
    return network_from_bytes(xml.encode(), bytes(range(weights)), "net.xml")


def test_constants() -> None:
    (layer,) = constant_of("2,3", 6, (2, 3)).layers
    assert layer.value is not None
    assert layer.value.tolist() == [[8, 9, 10], [11, 12, 13]]
    assert constant_of("", 1, ()).layers[0].value == 8
    assert constant_of("56", 56, (56,)).layers[0].value is not None  # the last byte of the file
    for arguments, message in (
        (("57", 57, (57,)), r"bytes 8\.\.65 lie outside the \.bin, which has 64"),
        (("2,3", 6, (3, 2)), r"i8\[2, 3\] differs from what its output port states"),
        (("2,3", 5, (2, 3)), r"size is 5 bytes; i8\[2, 3\] has 6"),
        (("2,3", 6, (2, 3), "u8"), r"u8\[2, 3\] differs from what its output port states"),
        (("2,3", 6, (2, 3), "f8"), r"element_type f8; read are f32, "),
        ((f"{1 << 41}", 6, (1 << 41,)), "has more than 1099511627776 elements"),
        ((f"{1 << 40}", 6, (1 << 40,)), "size is 6 bytes"),
    ):
        with pytest.raises(FormatError, match=message):
            constant_of(*arguments)


def test_a_circle(files: tuple[bytes, bytes]) -> None:
    xml = (
        b'<net name="n" version="11"><layers>\n'
        b'<layer id="0" name="a" type="ReLU" version="opset1"><input><port id="0" precision="FP32"/></input>'
        b'<output><port id="1" precision="FP32"/></output></layer></layers>\n'
        b'<edges><edge from-layer="0" from-port="1" to-layer="0" to-port="0"/></edges></net>'
    )
    with pytest.raises(FormatError, match="line 2: layer 0 waits for itself"):
        network_from_bytes(xml, b"", "circle.xml")


def test_equal_and_inverted_ranges(files: tuple[bytes, bytes]) -> None:
    xml, weights = files
    (offsets,) = [re.findall(rb'offset="(\d+)" size="4"', xml)]
    changed = bytearray(weights)
    low, high = int(offsets[0]), int(offsets[1])
    changed[high : high + 4] = changed[low : low + 4]
    with pytest.raises(FormatError, match=r"input_low and input_high are both .*, a scale of zero"):
        model_from_bytes(xml, bytes(changed), "net.xml")
    changed[high : high + 4] = np.float32(-1e9).tobytes()
    with pytest.raises(FormatError, match=r"input_low .* is above input_high"):
        model_from_bytes(xml, bytes(changed), "net.xml")


def test_a_short_bin(files: tuple[bytes, bytes]) -> None:
    xml, weights = files
    with pytest.raises(FormatError, match=r"line \d+: bytes .* lie outside the .bin"):
        model_from_bytes(xml, weights[:-1], "net.xml")


def test_random_damage(files: tuple[bytes, bytes]) -> None:
    """Whatever is changed, the file reads or is refused in one line."""
    xml, weights = files
    rng, messages = random.Random(0), list[str]()
    for _ in range(300):
        changed = bytearray(xml)
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(len(changed))
            changed[start : start + rng.randint(0, 6)] = bytes(rng.choices(b'<>"/0123456789- abc', k=rng.randint(0, 4)))
        try:
            model_from_bytes(bytes(changed), weights, "net.xml")
        except TflqError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert not any("\n" in message for message in messages)


def test_little_text_is_kept() -> None:
    """An IR has none that counts: what an element holds stays below two pieces of what expat hands over."""
    tree = _Tree(expat.ParserCreate(), "here")
    tree.start("net", {})
    for _ in range(3):
        tree.characters("x" * 40_000)
    assert tree.root is not None
    assert len(tree.root.text) == 80_000
