import random
import tracemalloc
import warnings

import numpy as np
import pytest

from kctx.data import Corpus
from kctx.data.document_index import scan_documents

pytestmark = pytest.mark.once


def write(path, data):
    path.write_bytes(data)
    return str(path)


def documents_of(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # documents of one sentence
        corpus = Corpus(path, **options)
    return [corpus.sentences(i) for i in range(corpus.num_documents)]


def by_lines(data):
    """The plain reading: a blank line ends a document."""
    documents, current = [], []
    for line in [*data.decode("utf-8-sig").split("\n"), ""]:
        if line.strip():
            current.append(line.strip())
        elif current:
            documents.append(current)
            current = []
    return documents


@pytest.mark.parametrize(
    "data",
    [
        b"a b.\nc.\n\nd.\n",
        b"\n\n  \na\nb\n \t \n\n\nc\n\n\n",
        b"\xef\xbb\xbfa\r\nb\r\n\r\nc\r\n",
        b"\xef\xbb\xbf\n\na\n\nb",
        b" a\n b\n \n c \n",
        "é\n\n中国\n国\n \n人".encode(),
        b"one line without an end",
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 1 << 20])
def test_documents_are_those_of_a_reading_by_lines(tmp_path, data, chunk_bytes):
    path = write(tmp_path / "a.txt", data)
    starts, lengths, size, _ = scan_documents(path, "utf-8", chunk_bytes)
    found = [
        by_lines(data[start : start + length])
        for start, length in zip(starts, lengths, strict=True)
    ]
    assert [[lines] for lines in by_lines(data)] == found
    assert size == len(data)


def test_random_bytes_of_blank_lines_agree_with_reading_by_lines(tmp_path):
    rng = random.Random(0)
    for _ in range(100):
        data = (
            "".join(rng.choice("\n\n\n  \r\tab") for _ in range(60)).replace("\r", "\r\n").encode()
        )
        path = write(tmp_path / "a.txt", data)
        if not data.strip():
            continue
        for chunk in (1, 5, 1000):
            starts, lengths, *_ = scan_documents(path, "utf-8", chunk)
            found = [by_lines(data[s : s + n])[0] for s, n in zip(starts, lengths, strict=True)]
            assert found == by_lines(data)


def test_globs_lists_and_order(tmp_path):
    for name in ("b.txt", "a.txt", "c[1].txt"):
        write(tmp_path / name, f"{name}\nx\n".encode())
    corpus = Corpus([str(tmp_path / "*.txt"), str(tmp_path / "a.txt")])
    assert [corpus.sentences(i)[0] for i in range(3)] == ["a.txt", "b.txt", "c[1].txt"]
    assert Corpus(str(tmp_path / "c[1].txt")).num_documents == 1
    assert corpus.num_bytes == 8 + 8 + 11


def test_encoding_errors_name_file_and_offset(tmp_path):
    path = write(tmp_path / "latin.txt", b"x" * 1000 + b"\n\ncaf\xe9 au lait\n")
    with pytest.raises(ValueError, match=r"latin\.txt is not valid utf-8: the byte at offset 1005"):
        Corpus(path)
    assert documents_of(path, encoding="latin-1")[1] == ["café au lait"]
    cut = write(tmp_path / "cut.txt", "a\n\n中".encode()[:-1])
    with pytest.raises(ValueError, match="offset 3"):
        Corpus(cut)
    for chunk in (1, 2, 4):
        with pytest.raises(ValueError, match="offset 1005"):
            scan_documents(path, "utf-8", chunk)
    wide = write(tmp_path / "wide.txt", "a\n\nb".encode("utf-16"))
    with pytest.raises(ValueError, match="begins like UTF-16"):
        Corpus(wide)
    with pytest.raises(ValueError, match="must keep ASCII"):
        Corpus(wide, encoding="utf-16")
    with pytest.raises(ValueError, match="known to Python.*utf-99"):
        Corpus(wide, encoding="utf-99")


def test_chinese_encoding(tmp_path):
    text = "中国人。\n\n你好\n"
    path = write(tmp_path / "gb.txt", text.encode("gb18030"))
    assert documents_of(path, encoding="gb18030") == [["中国人。"], ["你好"]]


def test_no_file_and_empty_corpus(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file matches '.*nothing\*\.txt'"):
        Corpus(str(tmp_path / "nothing*.txt"))
    with pytest.raises(FileNotFoundError, match="It is a folder"):
        Corpus(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="`files` is empty"):
        Corpus([])
    for data in (b"", b" \n\n\t\r\n"):
        with pytest.raises(ValueError, match="corpus is empty.*blank line between documents"):
            Corpus(write(tmp_path / "empty.txt", data))


def test_warns_when_every_document_is_one_sentence(tmp_path):
    path = write(tmp_path / "a.txt", b"one two\n\nthree four\n\nfive six\n")
    with pytest.warns(UserWarning, match="blank lines between the sentences"):
        Corpus(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Corpus(write(tmp_path / "b.txt", b"one\ntwo\n\nthree\nfour\n"))


def test_paragraphs_are_split_when_lines_hold_several_sentences(tmp_path):
    path = write(
        tmp_path / "a.txt", b"One is here. Two is too. Three.\nFour. Five.\n\nSix. Seven.\n"
    )
    assert documents_of(path) == [
        ["One is here.", "Two is too.", "Three.", "Four.", "Five."],
        ["Six.", "Seven."],
    ]
    assert documents_of(path, split_sentences=False)[1] == ["Six. Seven."]
    lines = write(tmp_path / "b.txt", b"One is here.\nTwo is too.\n\nThree.\nFour.\n")
    assert not Corpus(lines).splits_lines and Corpus(path).splits_lines
    with pytest.raises(ValueError, match=r"split_sentences='yes'"):
        Corpus(path, split_sentences="yes")


def test_long_documents_are_cut_at_line_ends(tmp_path):
    lines = [f"line {i} of a long document" for i in range(1000)]
    path = write(tmp_path / "a.txt", "\n".join(lines).encode())
    documents = documents_of(path, max_document_bytes=2000, split_sentences=False)
    assert len(documents) > 10
    assert [line for document in documents for line in document] == lines


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "big5", "shift_jis", "latin-1"])
def test_a_line_without_end_is_cut_between_characters(tmp_path, encoding):
    text = "é" * 5001 if encoding == "latin-1" else "x" + "中" * 5000
    path = write(tmp_path / "b.txt", text.encode(encoding))
    options = {"max_document_bytes": 1024, "split_sentences": False, "encoding": encoding}
    documents = documents_of(path, **options)
    assert len(documents) > 4
    assert "".join(line for document in documents for line in document) == text


def test_very_long_line(tmp_path):
    path = write(tmp_path / "a.txt", b"x" * 3_000_000 + b"\nb\n\nc\nd\n")
    corpus = Corpus(path, max_document_bytes=1 << 23)
    assert len(corpus.sentences(0)[0]) == 3_000_000 and corpus.sentences(1) == ["c", "d"]


def test_sentences_from_is_uniform_over_short_documents_and_covers_long_ones(tmp_path):
    short = "\n".join(f"s{i}" for i in range(5))
    long = "\n".join(f"line {i:05d} of the long one" for i in range(1000))
    corpus = Corpus(write(tmp_path / "a.txt", f"{short}\n\n{long}\n".encode()))
    rng = random.Random(0)
    starts = [corpus.sentences_from(0, rng) for _ in range(2000)]
    counts = np.bincount([int(start[0][1:]) for start in starts])
    assert counts.min() > 330 and all(start[-1] == "s4" for start in starts)
    firsts = []
    for _ in range(2000):
        sentences = corpus.sentences_from(1, rng, limit=4096)
        firsts.append(int(sentences[0][5:10]))
        assert [int(s[5:10]) for s in sentences] == list(
            range(firsts[-1], firsts[-1] + len(sentences))
        )
    assert np.histogram(firsts, 10, (0, 1000))[0].min() > 150


def test_index_memory_is_bounded(tmp_path):
    document = "a sentence of a document that is not long\n" * 8 + "\n"
    path = write(tmp_path / "a.txt", (document * 60_000).encode())  # 21 MB
    tracemalloc.start()
    starts, _, size, _ = scan_documents(path, "utf-8", 1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(starts) == 60_000 and size > 20_000_000
    # The chunks, and some 100 bytes a document while they are listed.
    assert peak < 4 * (1 << 20) + 110 * 60_000


def test_fingerprint_follows_content_not_name(tmp_path):
    one = Corpus(write(tmp_path / "a.txt", b"a\nb\n\nc\nd"), split_sentences=False)
    same = Corpus(write(tmp_path / "b.txt", b"a\nb\n\nc\nd"), split_sentences=False)
    other = Corpus(write(tmp_path / "c.txt", b"a\nb\n\nc\ne"), split_sentences=False)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
