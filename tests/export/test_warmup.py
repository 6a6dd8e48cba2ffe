import pytest

from kctx.export.warmup import field, varint

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (16384, b"\x80\x80\x01"),
    ],
)
def test_varint(value, encoded):
    assert varint(value) == encoded


def test_field():
    # Tag of field 2, length-delimited: 2 << 3 | 2 = 18.
    assert field(2, "testing") == b"\x12\x07testing"
    assert field(1, "é") == b"\x0a\x02\xc3\xa9"
    assert field(16, b"x" * 200)[:4] == b"\x82\x01\xc8\x01"
