"""Each format's quoting gives the text back to a reader of the format, without a character that is not printable."""

from __future__ import annotations

import json
import subprocess
from xml.etree import ElementTree

import pytest

from tests.hostile.names import PARTS
from tflq.quoting import (
    LONGEST_FILE_NAME,
    c_identifiers,
    compass_name,
    compass_word,
    escape_unprintable,
    file_name,
    json_text,
    markdown_code,
    prototxt_string,
    shell_word,
    xml_attribute,
    xml_text,
)

TEXTS = (*PARTS, "".join(PARTS), "\udcff\ud800", "\U000e0041", "\ufeff\ufffe", "plain", "-rf", ".", "a b")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_nothing_unprintable_is_left(text: str) -> None:
    for quoted in (escape_unprintable(text), json_text(text), xml_text(text), xml_attribute(text), shell_word(text)):
        assert quoted.isprintable()
    for quoted in (prototxt_string(text), compass_word(text), markdown_code(text), file_name(text)):
        assert quoted.isprintable()
    assert escape_unprintable(escape_unprintable(text)) == escape_unprintable(text)


def test_what_is_printable_is_shown_as_it_is() -> None:
    assert escape_unprintable("C:\\new é中 'x'") == "C:\\new é中 'x'"
    assert escape_unprintable("a\n\x1b[31m\x9b\u202e\u2028") == "a\\n\\x1b[31m\\x9b\\u202e\\u2028"


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_json(text: str) -> None:
    assert json.loads(json_text({text: [text]})) == {text: [text]}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_xml(text: str) -> None:
    """What XML 1.0 cannot hold comes back as it is shown."""
    element = ElementTree.fromstring(f"<a b={xml_attribute(text)}>{xml_text(text)}</a>")
    assert element.get("b") == (element.text or "")
    assert escape_unprintable(element.text or "") == escape_unprintable(text)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_shell(text: str) -> None:
    done = subprocess.run(["sh", "-c", f"printf %s {shell_word(text)}"], capture_output=True, check=True)
    assert done.stdout.decode() == escape_unprintable(text)


def test_prototxt() -> None:
    assert prototxt_string('a"b\\c\n\x1b\u202e') == '"a\\"b\\\\c\\012\\033\\342\\200\\256"'


def test_compass_word() -> None:
    assert compass_word("a=b,[c] d\te\x1b\u2028é") == "a_b__c__d_e__é"


def test_compass_name() -> None:
    """Names of JAX's layers, and what the Parser wrote of them."""
    assert compass_name("jit(main)/BTD,NDH->BTNH/dot_general1") == "jit_main_/BTD_NDH__BTNH/dot_general1"
    assert compass_name("a.b:0;c_d'e\"f/9 é-") == "a.b:0;c_d'e\"f/9___"


def test_markdown_code() -> None:
    assert markdown_code("a") == "`a`"
    assert markdown_code("`a``b") == "``` `a``b ```"


def test_file_names_stay_apart_and_in_their_folder() -> None:
    names = [file_name(text) for text in (*TEXTS, "a_b", "a;b", "a:b", "..", "../../x", "x" * 250)]
    assert len({name for name in names if name}) == len(set(TEXTS) - {""} | {"a_b", "a;b", "a:b", "x" * 250})
    assert all("/" not in name and name[:1] not in (".", "-") for name in names)
    assert all(len(name.encode()) <= 2 * LONGEST_FILE_NAME + 9 for name in names)
    assert file_name("mobilenet_v1_1.0-224") == "mobilenet_v1_1.0-224"


def test_identifiers_stay_apart() -> None:
    names = ["a/b", "a_b", "layer_0", "A_C", "a.c", "1x", "", "x" * 200, "conv"]
    found = c_identifiers(names)
    assert len({name.lower() for name in found}) == len(names)
    assert all(name.isidentifier() and name.isascii() and len(name) <= LONGEST_FILE_NAME + 1 for name in found)
    assert found[-1] == "conv"
