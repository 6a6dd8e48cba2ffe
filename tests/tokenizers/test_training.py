"""Vocabulary training."""

import pytest

from kctx.tokenizers import WordPieceTokenizer, train_wordpiece

pytestmark = pytest.mark.once

LINES = ["low lower lowest", "new newer newest", "wide wider widest low new"] * 4


def train(lines=LINES, vocabulary_size=40, **options):
    if "files" in options:
        lines = None
    return train_wordpiece(vocabulary_size=vocabulary_size, lines=lines, progress=False, **options)


def test_layout_of_the_vocabulary():
    """Special tokens, the alphabet in order, the alphabet inside words, then what was learnt."""
    vocabulary = train().vocabulary
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set("".join(LINES)) - {" "})
    assert vocabulary[5 : 5 + len(letters)] == letters
    assert len(vocabulary) <= 40
    assert "low" in vocabulary and "##est" in vocabulary  # the most frequent stem and ending


def test_no_word_is_unknown():
    tokenizer = train()
    ids = tokenizer(LINES).to_list()
    assert all(tokenizer.unknown_id not in row for row in ids)
    assert tokenizer.detokenize(ids) == LINES


def test_same_text_same_vocabulary():
    """The trainer underneath numbers by a hash that differs from run to run."""
    text = [f"{a}{b}{c} {c}{a}" for a in "abcdef" for b in "ghijk" for c in "lmnop"]
    first = train(text, 120).vocabulary
    assert all(train(text, 120).vocabulary == first for _ in range(4))


def test_files_and_iterables_give_the_same(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_bytes("\r\n".join(LINES[:6]).encode())
    paths[1].write_text("\n".join(LINES[6:]), encoding="utf-8")
    expected = train().vocabulary
    assert train(files=paths).vocabulary == expected
    assert train(iter(LINES)).vocabulary == expected
    written = tmp_path / "new" / "vocab.txt"
    assert train(files=tuple(map(str, paths)), path=written).vocabulary == expected
    assert WordPieceTokenizer(tmp_path / "new" / "vocab.txt").vocabulary == expected


def test_normalises_as_the_tokenizer_does():
    assert "café" in train(["Café CAFÉ café"] * 3, 60, strip_accents=False).vocabulary
    assert "cafe" in train(["Café CAFÉ café"] * 3, 60).vocabulary
    chinese = train(["我们去公园", "公园很好"] * 3, 60).vocabulary
    assert "公" in chinese and not any(len(x) > 1 and x[0] == "公" for x in chinese)


def test_long_lines_and_long_words():
    """A line is no file name, however long; a word beyond what a token may hold is cut."""
    assert "中" in train(["中文" * 400] * 2).vocabulary
    vocabulary = train(["жх" * 99] * 3, 100).vocabulary
    assert max(len(token.encode()) for token in vocabulary) <= 256


def test_alphabet_is_bounded():
    rare = [chr(0x4E00 + i) for i in range(500)]
    tokenizer = train([*LINES, *rare], 60)
    assert tokenizer.vocabulary_size <= 60
    assert sum(x in tokenizer.vocabulary for x in rare) < 30


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="at least one word. Received: \\[\\]"):
        train([])
    with pytest.raises(ValueError, match="at least one word"):
        train(["", " \t "])
    with pytest.raises(ValueError, match="`vocabulary_size` must be at least 7"):
        train(LINES, 5)
    (tmp_path / "there.txt").write_text("here", encoding="utf-8")
    for files in (tmp_path / "absent.txt", [tmp_path / "absent.txt", tmp_path / "there.txt"]):
        with pytest.raises(FileNotFoundError, match="absent"):
            train(files=files)
    with pytest.raises(ValueError, match="`lines` must be several texts"):
        train("one text")
    for both in ({}, {"files": tmp_path / "there.txt", "lines": ["a"]}):
        with pytest.raises(ValueError, match="either `files` or `lines`"):
            train_wordpiece(**both)
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(ValueError, match=r"latin\.txt is not valid utf-8: the byte at offset 8"):
        train(files=tmp_path / "latin.txt")
    assert (
        "café"
        in train(
            files=tmp_path / "latin.txt",
            encoding="latin-1",
            strip_accents=False,
            min_frequency=1,
        ).vocabulary
    )
