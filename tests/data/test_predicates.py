"""Predicates and their roles in columns."""

import numpy as np
import pytest

from kctx.data import TaggingStream, read_predicates
from kctx.preprocessors import WordsPreprocessor
from kctx.tokenizers import WordTokenizer

pytestmark = pytest.mark.once

# Word, predicate, and the roles of the first and of the second predicate, as CoNLL-2005 has them.
BRACKETS = """\
The - (A0* (A0*
cat - *) *)
that - (R-A0*) *
slept sleep (V*) *
saw see * (V*)
two - * (A1*
birds - * *)

It - *
rained rain (V*)

Nothing -
"""
ROLES = [
    ["B-A0", "I-A0", "B-R-A0", "B-V", "O", "O", "O"],
    ["B-A0", "I-A0", "O", "O", "B-V", "B-A1", "I-A1"],
    ["O", "B-V"],
]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_brackets(tmp_path):
    found = read_predicates(write(tmp_path / "a.txt", BRACKETS), predicate_column=1)
    assert found.tags == ROLES and found.predicates == [3, 4, 1] and found.scheme == "BIO"
    assert found.words[0] == found.words[1] == "The cat that slept saw two birds".split()
    assert found.lines == [1, 1, 9]
    assert found.report == {"repaired": 0, "without_predicate": 1, "unknown_tags": {}}
    labels = ("A0", "A1", "R-A0", "V")
    assert found.tag_names == ["O", *(f"{x}-{label}" for label in labels for x in "BI")]
    assert found.take([2, 0]).predicates == [1, 3]
    rest, held_out = found.split(every=2)  # of two sentences
    assert rest.predicates == [3, 4] and held_out.predicates == [1]


def test_bio_and_other_columns(tmp_path):
    """Tabs, "_" for no predicate, columns between, one predicate to a sentence."""
    text = "1\tshe\tPRP\t_\tx\tB-A0\n2\truns\tVBZ\trun.01\tx\tB-V\n"
    path = write(tmp_path / "a.tsv", text)
    found = read_predicates(path, 3, word_column=1, role_column=-1)
    assert found.words == [["she", "runs"]] and found.predicates == [1]
    assert found.tags == [["B-A0", "B-V"]]
    known = read_predicates(path, -3, 1, 5, tag_names=["O", "B-V"], unknown_tags="count")
    assert known.report["unknown_tags"] == {"B-A0": 1} and known.tag_ids == [[-1, 1]]
    with pytest.raises(ValueError, match="line 1: the tag 'B-A0' is not among the known"):
        read_predicates(path, 3, 1, -1, tag_names=["O", "B-V"])


def test_tags_that_break_their_scheme(tmp_path):
    path = write(tmp_path / "a.txt", "a - I-A0\nb be B-V\n")
    with pytest.warns(UserWarning, match="1 of 1 predicates break the scheme BIO"):
        found = read_predicates(path, 1)
    assert found.tags == [["B-A0", "B-V"]] and found.report["repaired"] == 1


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a be (V*)\n", 5, r"a\.txt, line 1: no column 5 for the predicate, the line has 3"),
        ("a be\n", 1, "line 1: no column 2 for the roles of predicate 1"),
        ("a be B-V\nb do O\n", 1, "line 1: no column 3 for the roles of predicate 2"),
        (
            "a - O\n\nb be B-V O\n",
            1,
            r"line 3: number of predicates in the sentence: 1, of columns of roles, .*: 2\.",
        ),
        ("a be B-V\nb - O x\n", 1, "line 2: the line has 4 columns, the first .* has 3"),
        ("a be (V*\n", 1, "line 1: the role 'V' does not end"),
        ("a be (V*)\nb - *)\n", 1, r"line 2: the brackets of '\*\)' do not match"),
        ("a be (V*\nb - (A0*)\n", 1, r"line 2: the brackets of '\(A0\*\)' do not match"),
        ("a be V\n", 1, "line 1: 'V' is no role"),
        ("a\tbe\tB-V\n\t-\tO\n", 1, "line 2: the word is empty"),
        ("a - O\n", 1, "holds no predicate in column 1"),
        ("", 1, "holds no predicate"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, column, message):
    with pytest.raises(ValueError, match=message):
        read_predicates(write(tmp_path / "a.txt", text), column)


def test_stream_marks_the_predicate_in_every_window(tmp_path):
    found = read_predicates(write(tmp_path / "a.txt", BRACKETS), 1)
    words = sorted({word for row in found.words for word in row})
    preprocessor = WordsPreprocessor(WordTokenizer(words), sequence_length=4)
    stream = TaggingStream(found, preprocessor, batch_size=2, seed=3)
    seen = set()
    batches = iter(stream.dataset())
    for _ in range(stream.steps_per_epoch):
        inputs, labels = next(batches)
        rows = zip(*(np.asarray(x) for x in (inputs["predicate_indicator"], labels)), strict=True)
        for indicator, tags in rows:
            names = [found.tag_names[tag] for tag in tags if tag >= 0]
            marked = [name == "B-V" for name in names]
            assert indicator[: len(names)].tolist() == marked and not indicator[len(names) :].any()
            seen.add(tuple(names))
    assert ("B-A0", "I-A0", "B-R-A0", "B-V") in seen and ("O", "B-V") in seen
    assert any("B-V" not in names for names in seen)  # a window without its predicate
    other = TaggingStream(found.take([1, 0, 2]), preprocessor)
    assert other.fingerprint()["examples"] != stream.fingerprint()["examples"]


def test_columns_that_are_none(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a see (V*)\n", encoding="utf-8")
    for column in (None, "1", 1.5):
        with pytest.raises(ValueError, match="`predicate_column` must be the number of a column"):
            read_predicates(path, column)
