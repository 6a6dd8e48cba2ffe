"""Counting words: order, rare words, and text that is not clean."""

import collections
import functools
import gzip
import tracemalloc

import numpy as np
import pytest

from kctx.data import id_corpus, word_vocabulary
from kctx.data.text_blocks import ALL_WHITE_SPACE, split_tokens, text_blocks
from kctx.data.word_vocabulary import WordVocabulary
from kctx.words import to_bytes, to_text

pytestmark = pytest.mark.once


def train(*lines, **options):
    return WordVocabulary.train(lines=lines, **{"min_count": 1, **options})


def test_most_frequent_first_and_equals_by_first_appearance():
    made = train("b c a a", "c d b a")
    assert made.words == ["a", "b", "c", "d"]
    assert made.counts.tolist() == [3, 2, 2, 1] and made.counts.dtype == np.int64
    assert made.num_lines == 2 and made.num_tokens == 8 and len(made) == 4
    assert "d" in made and "e" not in made
    assert train("c b a", order="bytes").words == ["a", "b", "c"]
    # By bytes, not by code points of surrogates.
    assert train(b"\xff", "\U0001f600", "é", order="bytes").words == ["é", "\U0001f600", "\udcff"]


def test_rare_words_are_left_out_but_counted():
    made = train("a a a b b c", min_count=2)
    assert made.words == ["a", "b"] and made.num_tokens == 6
    assert train("a a a b b c", max_size=1).words == ["a"]


def test_no_word_left():
    with pytest.raises(
        ValueError, match="No word .* min_count=5 .* 3 tokens are 2 words.* 2 times"
    ):
        train("a a b", min_count=5)
    with pytest.raises(ValueError, match="its 0 tokens are 0 words"):
        train("", " \t ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": -1}, "`min_count` must be an integer of at least 0. Received: min_count=-1"),
        ({"max_size": 0}, "`max_size` must be"),
        ({"order": "size"}, "`order` must be 'first' or 'bytes'. Received: order='size'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        train("a", **options)


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.txt"):
        WordVocabulary.train(tmp_path / "absent.txt")
    with pytest.raises(FileNotFoundError):
        WordVocabulary.train(tmp_path)
    with pytest.raises(ValueError, match="at least one file"):
        WordVocabulary.train([])
    with pytest.raises(ValueError, match="`lines` must be several texts"):
        WordVocabulary.train(lines="a b c")


def test_any_bytes(tmp_path):
    """CRLF, invalid UTF-8, a zero byte, a huge word, a file without a line end, `</s>` as text."""
    path, long = tmp_path / "text.txt", "x" * 100_000
    path.write_bytes(
        b"a\r\na\xff \xe4\xb8\r\nnul\0word </s> " + long.encode() + b"\r\n\r\n</s> end"
    )
    made = WordVocabulary.train(path, min_count=1)
    expected = {"a": 1, "a\udcff": 1, "\udce4\udcb8": 1, "nul\0word": 1, long: 1, "end": 1}
    assert dict(zip(made.words, made.counts.tolist(), strict=True)) == {**expected, "</s>": 2}
    assert made.num_lines == 5
    assert all(to_text(to_bytes(word)) == word for word in made.words)
    assert "nul" in WordVocabulary.train(path, min_count=1, white_space=ALL_WHITE_SPACE)


def test_white_space():
    block = b"a\x0bb\x0cc\0d\te\rf\n"
    assert split_tokens(block) == [b"a\x0bb\x0cc\0d", b"e", b"f"]
    assert split_tokens(block, ALL_WHITE_SPACE) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    # Unicode's spaces are letters like all others.
    assert train("a\u3000b\u00a0c").words == ["a\u3000b\u00a0c"]


@pytest.mark.parametrize("block_bytes", [1, 2, 5, 1000])
def test_blocks_are_whole_lines(tmp_path, block_bytes):
    contents = [b"one two\n\nthree\r\nfour", b"", b"\n", b"five \xc3\xa9\n"]
    for number, content in enumerate(contents):
        (tmp_path / str(number)).write_bytes(content)
    files = sorted(tmp_path.iterdir())
    blocks = list(text_blocks(files, "", whole_lines=True, block_bytes=block_bytes))
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) == b"one two\n\nthree\r\nfour\n\nfive \xc3\xa9\n"


ONE_LINE = [b"a bb\tc  dd a bb", b"a bb\n\nccc a bb ", b"x" * 50 + b" a\r\nbb a ", b" \n ", b"\n"]


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("content", ONE_LINE)
def test_long_lines_are_cut_at_white_space(tmp_path, monkeypatch, block_bytes, content):
    path = tmp_path / "text"
    path.write_bytes(content)
    blocks = list(text_blocks([path], "", block_bytes=block_bytes))
    whole = content if content.endswith(b"\n") else content + b"\n"
    assert b"".join(blocks) == whole
    assert all(block[-1:] in b"\n \t" for block in blocks)
    assert max(map(len, blocks)) < 2 * block_bytes + 50
    if not content.strip():
        return
    small = functools.partial(text_blocks, block_bytes=block_bytes)
    for module in (word_vocabulary, id_corpus):
        monkeypatch.setattr(module, "text_blocks", small)
    made = WordVocabulary.train(path, min_count=1, line_end="</s>")
    lines = whole.split(b"\n")[:-1]
    expected = train(*lines, line_end="</s>")
    assert (made.words, made.counts.tolist()) == (expected.words, expected.counts.tolist())
    assert made.num_lines == len(lines) and made.num_tokens == expected.num_tokens
    ids = id_corpus.IdCorpus.build(made, path).ids
    np.testing.assert_array_equal(ids, id_corpus.IdCorpus.build(made, lines=lines).ids)


def test_a_corpus_of_one_line_takes_little_memory(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"word " * 4_000_000)  # 20 MB
    tracemalloc.start()
    sizes = [len(block) for block in text_blocks([path], "", block_bytes=1 << 18)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(sizes) == 20_000_001 and peak < 2_000_000


def test_packed_files(tmp_path):
    """Known by their content; several members in a row are one text."""
    text = b"a b a\nc\xff a"
    (tmp_path / "plain.gz").write_bytes(text)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(text[:4]) + gzip.compress(text[4:]))
    (tmp_path / "packed").write_bytes((tmp_path / "packed.gz").read_bytes())
    for name in ("plain.gz", "packed.gz", "packed"):
        made = WordVocabulary.train(tmp_path / name, min_count=1)
        assert made.words == ["a", "b", "c\udcff"] and made.num_lines == 2
        ids = id_corpus.IdCorpus.build(made, [tmp_path / name] * 2).ids
        assert ids.tolist() == [0, 1, 0, -2, 2, 0, -2] * 2
    data = gzip.compress(np.random.default_rng(0).bytes(1000))
    changed = data[:200] + b"x" * 200 + data[400:]
    for number, broken in enumerate((data[:-9], data[:3], changed, data[:10] + b"\xff" * 50)):
        (tmp_path / f"broken{number}.gz").write_bytes(broken)
        with pytest.raises(ValueError, match=f"broken{number}.gz is a broken gzip file"):
            WordVocabulary.train(tmp_path / f"broken{number}.gz", min_count=1)


def test_files_and_lines_give_the_same(tmp_path):
    lines = ["a b", "", "b c b"]
    (tmp_path / "x").write_text("\n".join(lines) + "\n", encoding="utf-8")
    one, two = WordVocabulary.train(tmp_path / "x", min_count=1), train(*lines)
    assert one.words == two.words and one.num_lines == two.num_lines == 3
    assert train("a\nb").num_lines == 1  # a line that holds a line end stays one


def test_encode():
    made = train("a a b")
    assert made.encode(b"b x a\n\na").tolist() == [1, -1, 0, -2, -2, 0]  # within a line
    assert made.encode(b"b x a\n\na\n").tolist() == [1, -1, 0, -2, -2, 0, -2]
    assert made.encode(b"\n").tolist() == [-2]


def test_bounded_memory(monkeypatch):
    """With too many words the rarest are forgotten; frequent ones keep their counts."""
    monkeypatch.setattr(word_vocabulary, "_MOST_TYPES", 100)
    lines = [" ".join(f"word{100 * i + j}" for j in range(60)) + " the the of" for i in range(20)]
    blocks = [line.encode() + b"\n" for line in lines]
    monkeypatch.setattr(word_vocabulary, "line_blocks", lambda lines: blocks)
    with pytest.warns(UserWarning, match="more than 100 different words.*tokens in all"):
        made = train("")
    assert made.words[:2] == ["the", "of"] and made.counts[:2].tolist() == [40, 20]
    assert made.num_tokens == 20 * 63 and len(made) <= 200


def test_saves_as_the_tools_do(tmp_path):
    made = train("b a\xe9 a\xe9", b"\xff b b")
    made.save(tmp_path / "words.txt")
    assert (tmp_path / "words.txt").read_bytes() == b"b 3\na\xc3\xa9 2\n\xff 1\n"
    loaded = WordVocabulary.load(tmp_path / "words.txt")
    assert loaded.words == made.words and loaded.counts.tolist() == made.counts.tolist()


def test_files_that_are_none(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"a 3\nb\n")
    with pytest.raises(ValueError, match="words.txt, line 2 must be `word count`: b'b"):
        WordVocabulary.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="holds no words"):
        WordVocabulary.load(path)
    with pytest.raises(ValueError, match="cannot hold the word 'new york'"):
        WordVocabulary(["new york"], [1]).save(path)
    with pytest.raises(ValueError, match="Received twice: 'a'"):
        WordVocabulary(["a", "a"], [1, 1])
    path.write_bytes(b"a " + b"9" * 30 + b"\n")
    with pytest.raises(ValueError, match="words.txt, line 1 must be `word count`"):
        WordVocabulary.load(path)
    with pytest.raises(ValueError, match="`words` must be a list of str. Received: 'ab'"):
        WordVocabulary("ab", [1, 2])
    with pytest.raises(ValueError, match="`counts` must not be negative. Received: -1 of 'b'"):
        WordVocabulary(["a", "b"], [2, -1])
    for lines in (5, ["a", 5]):
        with pytest.raises(ValueError, match="must be.* Received: 5"):
            WordVocabulary.train(lines=lines)
    with pytest.raises(ValueError, match="a number for each word. Received: 1 words"):
        WordVocabulary(["a"], [1, 2])


def test_utf16_is_warned_of(tmp_path):
    """Its bytes are words like any others, but hardly those that were meant."""
    (tmp_path / "x").write_bytes("a b\nc d\n".encode("utf-16"))
    with pytest.warns(UserWarning, match="x begins like UTF-16.*convert it to UTF-8"):
        WordVocabulary.train(tmp_path / "x", min_count=1, progress=False)


def test_equals_a_plain_count(kctx_data):
    path = kctx_data / "wikitext2" / "valid.txt"
    made = WordVocabulary.train(path, min_count=5)
    plain = collections.Counter(path.read_text(encoding="utf-8").split())
    kept = {word: count for word, count in plain.items() if count >= 5}
    assert dict(zip(made.words, made.counts.tolist(), strict=True)) == kept
    assert made.num_tokens == plain.total()
    assert (np.diff(made.counts) <= 0).all()
