"""Texts as ids on disk."""

import numpy as np
import pytest

from kctx.data.id_corpus import LINE_END, UNKNOWN, IdCorpus
from kctx.data.word_vocabulary import WordVocabulary

pytestmark = pytest.mark.once

LINES = ["a b a", "", "c a rare", "b"]
IDS = [0, 1, 0, -2, -2, 2, 0, -1, -2, 1, -2]
VOCABULARY = WordVocabulary(["a", "b", "c"], [3, 2, 1])


def test_lines_unknown_words_and_line_ends(tmp_path):
    corpus = IdCorpus.build(VOCABULARY, lines=LINES)
    assert corpus.ids.tolist() == IDS and len(corpus) == len(IDS)
    assert (UNKNOWN, LINE_END) == (-1, -2)
    assert isinstance(corpus.ids, np.memmap)
    (tmp_path / "text").write_text("\n".join(LINES), encoding="utf-8")
    from_file = IdCorpus.build(VOCABULARY, tmp_path / "text", path=tmp_path / "ids")
    assert from_file.ids.tolist() == IDS
    assert IdCorpus.open(tmp_path / "ids").ids.tolist() == IDS
    assert (tmp_path / "ids").stat().st_size == 4 * len(IDS)


def test_nothing_known(tmp_path):
    with pytest.raises(ValueError, match="no word of the vocabulary"):
        IdCorpus.build(VOCABULARY, lines=["x y", ""], path=tmp_path / "ids")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="absent"):
        IdCorpus.build(VOCABULARY, tmp_path / "absent")
    for content in (b"", b"1234567"):
        (tmp_path / "cut").write_bytes(content)
        with pytest.raises(ValueError, match="cut must hold ids of 4 bytes each.*bytes"):
            IdCorpus.open(tmp_path / "cut")
    with pytest.raises(ValueError, match="`ids` must be int32 .* Received: int64, shape"):
        IdCorpus(np.zeros(3, np.int64))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 100])
def test_chunks_are_whole_lines(size):
    corpus = IdCorpus.build(VOCABULARY, lines=LINES)
    chunks = list(corpus.chunks(size))
    assert np.concatenate([ids for _, ids in chunks]).tolist() == IDS
    assert [begin for begin, _ in chunks] == np.cumsum([0, *(len(x) for _, x in chunks)])[
        :-1
    ].tolist()
    for _, ids in chunks:
        assert len(ids) <= size
        # Cut within a line only if the line is longer than the chunk.
        assert ids[-1] == LINE_END or (ids != LINE_END).all()
    later = list(corpus.chunks(size, start=4))
    assert np.concatenate([ids for _, ids in later]).tolist() == IDS[4:]
