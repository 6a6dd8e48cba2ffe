"""Raw text to words with offsets."""

import numpy as np
import pytest
import tensorflow as tf

from kctx.preprocessors.text_words import text_words

pytestmark = pytest.mark.once

CASES = {
    "": [],
    " \t\n\r\x00\u00a0\u3000\u2028": [],
    "word": ["word"],
    "  Two words. ": ["Two", "words", "."],
    "(U.S. e-mail, don't)": ["(", "U.S", ".", "e-mail", ",", "don't", ")"],
    "1,000.5 a,b 1, 2": ["1,000.5", "a", ",", "b", "1", ",", "2"],
    "http://x.y/z": ["http", ":", "/", "/", "x.y/z"],
    "-5 $5 C++ '' ...": ["-", "5", "$", "5", "C", "+", "+", "'", "'", ".", ".", "."],
    "他说：“你好”X3": ["他", "说", "：", "“", "你", "好", "”", "X3"],
    "e\u0301te\u0301 наука": ["e\u0301te\u0301", "наука"],
    "a\x01b \x01": ["a\x01b", "\x01"],
    "\U0001f600\U0001f468\u200d\U0001f469": ["\U0001f600", "\U0001f468", "\u200d", "\U0001f469"],
}


def found(texts, split="words"):
    made = text_words(tf.constant(texts, tf.string), split)
    return [[word.decode() for word in row] for row in made.words.to_list()], made


def test_golden():
    words, made = found(list(CASES))
    assert words == list(CASES.values())
    for text, row, starts, ends in zip(
        CASES, words, made.starts.to_list(), made.ends.to_list(), strict=True
    ):
        assert [text[start:end] for start, end in zip(starts, ends, strict=True)] == row
    assert made.starts.dtype == made.ends.dtype == tf.int32


def test_each_text_by_itself():
    for text, expected in CASES.items():
        assert found([text])[0] == [expected]


def test_characters():
    assert found(["ab, 中\tc", ""], "characters")[0] == [["a", "b", ",", "中", "c"], []]


def test_no_texts_and_broken_ones():
    assert found([])[0] == []
    assert found([b"a\xff b"])[0] == [["a", "\ufffd", "b"]]


def test_nothing_but_white_space_is_lost():
    generator = np.random.default_rng(0)
    letters = list("ab1.,-' 中é\u0301\n\u00a0\U0001f600")
    texts = ["".join(generator.choice(letters, 12)) for _ in range(200)]
    for text, words in zip(texts, found(texts)[0], strict=True):
        assert "".join(words) == "".join(text.split())


def test_errors():
    with pytest.raises(ValueError, match="`split` must be one of .* Received: split='bytes'"):
        text_words(tf.constant(["a"]), "bytes")
