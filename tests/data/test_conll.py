"""Columns of words and tags, good and bad."""

import pytest

from kctx.data import read_conll

pytestmark = pytest.mark.once


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


COLUMNS = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

-DOCSTART- -X- -X- O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER
"""


def test_columns_by_space(tmp_path):
    sentences = read_conll(write(tmp_path / "a.txt", COLUMNS), scheme="BIO")
    assert sentences.words == [["EU", "rejects"], ["Peter", "Blackburn"]]
    assert sentences.tags == [["B-ORG", "O"], ["B-PER", "I-PER"]]
    assert sentences.tag_names == ["O", "B-ORG", "I-ORG", "B-PER", "I-PER"]
    assert sentences.tag_ids == [[1, 0], [3, 4]]
    assert sentences.lines == [3, 8] and sentences.scheme == "BIO" and len(sentences) == 2
    assert sentences.report == {"repaired": 0, "unknown_tags": {}}
    speech = read_conll(tmp_path / "a.txt", tag_column=1)
    assert speech.tags[0] == ["NNP", "VBZ"] and speech.tag_names == ["NNP", "VBZ"]
    assert read_conll(tmp_path / "a.txt", tag_column=None).tags is None


def test_marks_of_the_file_are_no_part_of_the_text(tmp_path):
    """A byte order mark, CRLF, lines of white space, several blank lines, none at the end."""
    text = "\ufeffa\tO\r\n \r\n\t\r\n\r\nb c\tB-X\r\nd\u00a0e\u3000f\tI-X"
    sentences = read_conll(write(tmp_path / "a.tsv", text), scheme="BIO")
    assert sentences.words == [["a"], ["b c", "d\u00a0e\u3000f"]]
    assert sentences.tags == [["O"], ["B-X", "I-X"]] and sentences.lines == [1, 5]


def test_a_document_mark_without_blank_line(tmp_path):
    text = "a O\n-DOCSTART- O\nb O\n-DOCSTART- -X- O\n\n"
    assert read_conll(write(tmp_path / "a.txt", text)).words == [["a"], ["b"]]
    tabs = text.replace("a O", "a\tO").replace("b O", "b\tO")
    assert read_conll(write(tmp_path / "a.txt", tabs)).words == [["a"], ["b"]]


def test_separators(tmp_path):
    path = write(tmp_path / "a.txt", "new york\tB-X\n")
    assert read_conll(path).words == [["new york"]]
    assert read_conll(path, separator="space").words == [["new"]]
    mixed = write(tmp_path / "b.txt", "a  B-X\nb\t\tO \n")
    assert read_conll(mixed).tags == [["B-X", "O"]]


@pytest.mark.parametrize(
    ("scheme", "convert_to", "tags", "expected"),
    [
        ("BIO1", None, "I-X I-X B-X O I-Y", "B-X I-X B-X O B-Y"),
        ("BIO", "BIOES", "B-X I-X B-X O B-Y", "B-X E-X S-X O S-Y"),
        ("BMES", None, "B-X M-X E-X O S-Y", "B-X M-X E-X O S-Y"),
        ("BMES", "BIO", "B-X M-X E-X O S-Y", "B-X I-X I-X O B-Y"),
        ("BIOES", "BMES", "B-X I-X E-X O S-Y", "B-X M-X E-X O S-Y"),
    ],
)
def test_schemes_become_others(tmp_path, scheme, convert_to, tags, expected):
    text = "".join(f"w {tag}\n" for tag in tags.split())
    sentences = read_conll(write(tmp_path / "a.txt", text), scheme=scheme, convert_to=convert_to)
    assert " ".join(sentences.tags[0]) == expected
    assert sentences.scheme == (convert_to or ("BIO" if scheme == "BIO1" else scheme))
    assert sentences.report["repaired"] == 0 and -1 not in sentences.tag_ids[0]


def test_tags_that_break_their_scheme_are_repaired_and_counted(tmp_path):
    path = write(tmp_path / "a.txt", "a O\nb I-X\n\nc B-X\n\nd B-X\ne I-Y\n")
    with pytest.warns(UserWarning, match="2 of 3 sentences break the scheme BIO"):
        sentences = read_conll(path, scheme="BIO")
    assert sentences.tags == [["O", "B-X"], ["B-X"], ["B-X", "B-Y"]]
    assert sentences.report["repaired"] == 2


def test_unknown_tags_of_a_second_file(tmp_path):
    path = write(tmp_path / "a.txt", "a O\nb B-X\n\nc O\nd B-Z\ne I-Z\n")
    options = {"scheme": "BIO", "tag_names": ["O", "B-X", "I-X"]}
    with pytest.raises(ValueError, match=r"a\.txt, line 5: the tag 'B-Z' is not among the known"):
        read_conll(path, **options)
    sentences = read_conll(path, **options, unknown_tags="count")
    assert sentences.report["unknown_tags"] == {"B-Z": 1, "I-Z": 1}
    assert sentences.tag_ids == [[0, 1], [0, -1, -1]] and sentences.tags[1][1] == "B-Z"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\nb\n", {}, "line 1: one column only, so there is no tag"),
        (
            "in O\nNew York B-LOC\n",
            {},
            r"a\.txt, line 2: the line has 3 columns, the first of its sentence, line 1, has 2",
        ),
        ("a O\n\n# text = b\n1 b O\n", {}, "line 4: the line has 3 .* line 3, has 4"),
        ("a\tO\nb\tO\t\n", {}, "line 2: the line has 3 columns"),
        ("a O\nb O\n", {"tag_column": 3}, "line 1: no column 3 for the tag, the line has 2"),
        ("a O\nb O\n", {"word_column": 2}, "line 1: no column 2 for the word"),
        ("a\tO\n\tO\n", {}, "line 2: the word is empty"),
        ("a\tO\nb\t\n", {}, "line 2: the tag is empty"),
        ("a O\nb X-A\n", {"scheme": "BIO"}, "line 2: 'X-A' is not a tag of the scheme BIO"),
        ("a O\nb E-A\n", {"scheme": "BIO"}, "line 2: 'E-A' is not a tag of the scheme BIO"),
        ("\n \n", {}, "holds no sentence"),
        ("-DOCSTART- O\n\n", {}, "holds no sentence"),
        ("a O\n", {"scheme": "IO"}, "`scheme` must be one of"),
        ("a O\n", {"convert_to": "BIO"}, "`convert_to` needs the `scheme` of the file"),
        ("a O\n", {"unknown_tags": "drop"}, "`unknown_tags` must be one of"),
        ("a O\n", {"separator": ","}, "`separator` must be one of"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(write(tmp_path / "a.txt", text), **options)


def test_encodings(tmp_path):
    path = write(tmp_path / "a.txt", "café O\n", "latin-1")
    with pytest.raises(ValueError, match=r"a\.txt is not valid utf-8: the byte at offset 3"):
        read_conll(path)
    assert read_conll(path, encoding="latin-1").words == [["café"]]


def test_take_and_split(tmp_path):
    path = write(tmp_path / "a.txt", "\n".join(f"w{i} T{i % 2}\n" for i in range(10)))
    sentences = read_conll(path)
    rest, held_out = sentences.split(every=5)
    assert held_out.words == [["w4"], ["w9"]] and len(rest) == 8 and held_out.lines == [9, 19]
    assert held_out.tags == [["T0"], ["T1"]] and held_out.tag_names == ["T0", "T1"]
    with pytest.raises(ValueError, match=r"`every` must lie in \[2, 10\]"):
        sentences.split(every=11)


@pytest.mark.filterwarnings("ignore:.*break the scheme BMES")
@pytest.mark.parametrize(
    ("name", "scheme", "sentences", "words", "tags"),
    [
        ("conll2003/train.txt", "BIO", 14041, 203621, 9),
        ("conll2003/dev.txt", "BIO", 3250, 51362, 9),
        ("peopledaily_ner/train-part.txt", "BIO", 9000, 360574, 7),
        ("resume_ner/train.char.bmes", "BMES", 3821, 124099, 33),
        ("resume_ner/dev.char.bmes", "BMES", 463, 13890, 33),
    ],
)
def test_real_sets(kctx_data, name, scheme, sentences, words, tags):
    found = read_conll(kctx_data / name, scheme=scheme)
    assert len(found) == sentences and sum(map(len, found.words)) == words
    assert len(found.tag_names) == tags
    assert found.report["repaired"] == (4 if "resume_ner/train" in name else 0)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(tmp_path, end):
    path = write(tmp_path / "a.txt", end.join(["a O", "b B-X", "", "c\x0bd O", ""]))
    sentences = read_conll(path, scheme="BIO")
    assert sentences.words == [["a", "b"], ["c\x0bd"]] and sentences.lines == [1, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_column": None}, "`word_column` must be the number of a column. Received: .*None"),
        ({"word_column": True}, "`word_column` must be the number of a column"),
        ({"tag_column": "1"}, "`tag_column` must be the number of a column. Received: .*'1'"),
        ({"tag_names": ["O", "O"]}, r"`tag_names` must be .* Received: \['O', 'O'\]"),
        ({"tag_names": "O"}, "`tag_names` must be a list of different names. Received: 'O'"),
    ],
)
def test_arguments_that_are_none(tmp_path, options, message):
    path = write(tmp_path / "a.txt", "a O\n")
    with pytest.raises(ValueError, match=message):
        read_conll(path, **options)


def test_every_must_be_an_integer(tmp_path):
    sentences = read_conll(write(tmp_path / "a.txt", "a O\n\nb O\n\nc O\n"))
    with pytest.raises(ValueError, match=r"`every` must lie in \[2, 3\].*Received: 2.5"):
        sentences.split(2.5)
