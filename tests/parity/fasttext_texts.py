"""What the models of the fastText parity tests are asked about."""

OUTSIDE = ["wherever", "übrig", "日本酒", "x", "😀😀", "</s>", "<>", "zzzzzzzzzzzzzzzzzzzzzzzz"]
RAW = [b"\x80a\xff\x80", b"ab\xc3", b"\xe6\x97", b"x\x80\x80\x80\x80\x80y"]
TEXTS = [
    "red blue green", "", "   ", "where a ab abc", "日本語 日本 über", "unknown wherever 日本酒",
    "__label__one red", "__label__none red", "a </s> b", "a\tb\vc\fd", "gold " * 30,
]  # fmt: skip
