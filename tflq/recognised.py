"""What a file is that was given in another's place, told by its first bytes: for messages; imports nothing."""

from __future__ import annotations

_HEADS = (
    (b"\x93NUMPY", "a .npy file of numpy"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes .h5"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"RIFF", "a RIFF file, such as a WAV"),
    (b"\x1f\x8b", "a file packed by gzip; unpack it"),
    (b"BZh", "a file packed by bzip2; unpack it"),
    (b"\xfd7zXZ\x00", "a file packed by xz; unpack it"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"%PDF", "a PDF"),
    (b"version https://git-lfs", "a pointer of Git LFS; fetch the file itself with `git lfs pull`"),
)
_ARCHIVES = (
    (b"data.pkl", "a PyTorch file"),
    (b"config.json", "a .keras file"),
    (b".npy", "an .npz file of numpy"),
)
"""Names of members that tell what a zip archive is."""
_ONNX_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2}
"""Fields of ONNX's ModelProto with their wire types (onnx.proto)."""
_HEAD_BYTES = 512


def recognised(content: bytes | memoryview) -> str:
    """Return what a file's content is, such as "an ONNX model"; empty where nothing tells."""
    head = bytes(content[:_HEAD_BYTES])
    for start, kind in _HEADS:
        if head.startswith(start):
            return kind
    if head[4:8] == b"TFL3":
        return "a .tflite model"
    if head.startswith(b"PK\x03\x04"):
        return next((kind for name, kind in _ARCHIVES if name in head), "a zip archive; unpack it")
    if _is_onnx(head):
        return "an ONNX model"
    return _text_kind(head)


def _text_kind(head: bytes) -> str:
    """Return which kind of text it is; empty for no text in UTF-8."""
    try:
        text = head.decode("utf-8") if len(head) < _HEAD_BYTES else head[:-4].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return ""
    if not text.strip() or any(c < " " and c not in "\t\r\n\f" for c in text):
        return ""
    start = text.lstrip("\ufeff \t\r\n").lower()
    if start.startswith(("<!doctype html", "<html")):
        return "a page of HTML, as a server sends in place of a file; download the file itself"
    return "JSON" if start.startswith(("{", "[")) else "XML" if start.startswith("<?xml") else "text"


def _is_onnx(head: bytes) -> bool:
    """Return whether bytes are the first fields of a ModelProto: ir_version, then others that it has."""
    place = 0
    seen: list[int] = []
    while place < len(head):
        tag, place = _varint(head, place)
        field, wire = tag >> 3, tag & 7
        if _ONNX_FIELDS.get(field) != wire or (not seen and field != 1):
            return False
        value, place = _varint(head, place)
        place += value if wire == 2 else 0
        seen.append(field)
    return len(seen) > 1


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of protobuf's and where it ends; the end of the data ends it, too."""
    value = shift = 0
    while place < len(data):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, place
