"""Multiple choice in all its published forms."""

import json

import pytest

from kctx.data import read_choices

pytestmark = pytest.mark.once


def lines(path, *items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return path


def item(**more):
    return {"context": "c", "choices": ["x", "y"], "label": 1, **more}


def test_json_lines(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        item(),
        item(choices=["x", "y", "z"], label="z", question="q?"),
        item(choices=["0", "1"], label="0"),
    )
    examples = read_choices(path)
    assert examples.contexts == ["c"] * 3 and examples.labels == [1, 2, 0] and len(examples) == 3
    assert examples.answers == [["x", "y"], ["x", "y", "z"], ["0", "1"]]  # unequal numbers
    assert examples.choices[1] == ["q? x", "q? y", "q? z"] and examples.choices[0] == ["x", "y"]
    assert examples.places[1] == f"{path}, line 2"
    assert read_choices(path, labelled=False).labels is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"choices": ["x"]}, "two choices or more"),
        ({"choices": ["x", " "]}, "a choice is empty"),
        ({"choices": "xy"}, "the choices must be a list of texts"),
        ({"choices": ["x", 3]}, "the choices must be a list of texts"),
        ({"choices": None}, "no value for 'choices'"),
        ({"context": 3}, "the context must be a text"),
        ({"question": 3}, "the question must be a text"),
        ({"label": 2}, "its place from 0 to 1, an integer. Received: 2"),
        ({"label": -1}, "Received: -1"),
        ({"label": 1.0}, "Received: 1.0"),
        ({"label": True}, "Received: True"),
        ({"label": "z"}, "Received: 'z'; choices: "),
        ({"label": None}, "the label is missing"),
    ],
)
def test_bad_lines(tmp_path, changed, message):
    path = lines(tmp_path / "a.jsonl", item(), item(**changed))
    with pytest.raises(ValueError, match=f"a.jsonl, line 2: .*{message}"):
        read_choices(path)


def test_nothing_and_other_forms(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds no example"):
        read_choices(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1: not JSON"):
        read_choices(path)
    with pytest.raises(ValueError, match="`format` must be one of"):
        read_choices(path, "race")
    with pytest.raises(ValueError, match="not JSON"):
        read_choices(path, "dream")


def test_dialogues(tmp_path):
    path = tmp_path / "d.json"
    asked = [{"question": "Q?", "choice": ["x", "y"], "answer": "y"}]
    path.write_text(json.dumps([[["A: a", "B: b"], asked, "id"]]), encoding="utf-8")
    examples = read_choices(path, "dream")
    assert examples.contexts == ["A: a\nB: b"] and examples.questions == ["Q?"]
    assert examples.labels == [1] and examples.places == [f"{path}, dialogue 1, question 1"]
    for bad, message in (
        ([[["a"], "x"]], "dialogue 1: expected"),
        ([[[1], [], "id"]], "dialogue 1: the turns must be texts"),
        ([[["a"], [1], "id"]], "question 1: expected an object"),
        ([[["a"], [{**asked[0], "answer": "z"}], "id"]], "question 1: the label must be one of"),
        ({}, "expected a list of dialogues"),
    ):
        path.write_text(json.dumps(bad), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_choices(path, "c3")


COPA = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE copa-corpus SYSTEM "copa.dtd">
<copa-corpus version="1.0">
  <item id="1" asks-for="cause" most-plausible-alternative="2">
    <p>Wet &amp; cold.</p><a1>Sun.</a1><a2>Rain.</a2>
  </item>
  <item id="2" asks-for="effect" most-plausible-alternative="1">
    <p>P.</p><a1>A.</a1><a2>B.</a2>
  </item>
</copa-corpus>
"""


def test_copa(tmp_path):
    path = tmp_path / "copa.xml"
    path.write_text(COPA, encoding="utf-8")
    examples = read_choices(path, "copa")
    assert examples.contexts == ["Wet & cold.", "P."] and examples.labels == [1, 0]
    assert examples.choices[0] == ["What was the cause? Sun.", "What was the cause? Rain."]
    assert examples.questions[1] == "What happened as a result?"
    assert examples.places[0] == f"{path}, line 4"
    for old, new, message in (
        ("</copa-corpus>", "", "not XML"),
        ('"cause"', '"reason"', "line 4: expected an item with asks-for"),
        ("<a2>B.</a2>", "", "line 7: expected an item"),
        ('alternative="1"', 'alternative="3"', "line 7: the alternative must be 1 or 2"),
    ):
        path.write_text(COPA.replace(old, new), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_choices(path, "copa")


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "b">',
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % p SYSTEM "http://example.invalid/x.dtd"> %p;',
    ],
)
def test_xml_that_declares_entities_is_refused(tmp_path, declaration):
    path = tmp_path / "copa.xml"
    text = COPA.replace('SYSTEM "copa.dtd"', f"[{declaration}]").replace("Wet", "Wet &a;")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"copa\.xml: (XML that declares entities|not XML)"):
        read_choices(path, "copa")


def test_hellaswag(tmp_path):
    path = tmp_path / "h.txt"
    path.write_text("ctx\r\n2\r\na\r\nb\r\nc\r\nd\r\n\r\n", encoding="utf-8")
    examples = read_choices(path, "hellaswag")
    assert examples.contexts == ["ctx"] and examples.labels == [2]
    assert examples.choices == [["a", "b", "c", "d"]]
    path.write_text("ctx\n2\na\nb\nc\nd\nctx\n", encoding="utf-8")
    with pytest.raises(ValueError, match="Received: 7 lines, the last example begins on line 7"):
        read_choices(path, "hellaswag")
    path.write_text("ctx\n4\na\nb\nc\nd\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1: the label must be 0, 1, 2 or 3. Received: '4'"):
        read_choices(path, "hellaswag")


def test_mctest(tmp_path):
    path = tmp_path / "m.tsv"
    cells = ["id", "props", "A story.\\newline\\newlineEnd."]
    for number in range(4):
        cells += [f"{'multiple' if number else 'one'}: Q{number}?", *"abcd"]
    path.write_text("\t".join(cells) + "\r\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"must be in .*m\.ans, which is missing"):
        read_choices(path, "mctest")
    assert len(read_choices(path, "mctest", labelled=False)) == 4
    answers = tmp_path / "m.ans"
    answers.write_text("A\tB\tC\tD\r\n", encoding="utf-8")
    examples = read_choices(path, "mctest")
    assert examples.contexts[0] == "A story.\n\nEnd." and examples.labels == [0, 1, 2, 3]
    assert examples.choices[1] == ["Q1? a", "Q1? b", "Q1? c", "Q1? d"]
    answers.write_text("A\tB\tC\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1: expected four letters A to D"):
        read_choices(path, "mctest")
    answers.write_text("A\tB\tC\tD\nA\tB\tC\tD\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds more rows than"):
        read_choices(path, "mctest")
    path.write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1: expected 23 columns, as MCTest has. Received: 2"):
        read_choices(path, "mctest")


def test_split_keeps_contexts_together(tmp_path):
    path = lines(tmp_path / "a.jsonl", *(item(context=f"c{i // 2}") for i in range(12)))
    rest, held_out = read_choices(path).split(every=3)
    assert set(held_out.contexts) == {"c2", "c5"} and len(rest) == 8


@pytest.mark.parametrize(
    ("name", "format", "rows", "counts"),
    [
        ("dream/train-part.json", "dream", 1874, {3}),
        ("dream/dev-part.json", "dream", 806, {3}),
        ("c3/c3-d-train-part.json", "c3", 1794, {3, 4}),
        ("c3/c3-d-dev-part.json", "c3", 553, {3, 4}),
        ("copa/copa-dev.xml", "copa", 500, {2}),
        ("hellaswag/hellaswag_val_part.txt", "hellaswag", 2400, {4}),
        ("mctest/mc500.train.tsv", "mctest", 1200, {4}),
        ("mctest/mc500.dev.tsv", "mctest", 200, {4}),
    ],
)
def test_real_sets(kctx_data, name, format, rows, counts):
    examples = read_choices(kctx_data / name, format)
    assert len(examples) == rows and {len(answers) for answers in examples.answers} == counts
    assert all(context.strip() for context in examples.contexts)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Wet &amp; cold", "Wet &foo; cold", "line 5: the entity &foo; is not known"),
        ("<p>P.</p>", "<p>P <b>is</b> it.</p>", "line 8: <b> is too deep within an <item>"),
    ],
)
def test_xml_of_which_text_would_be_lost_is_refused(tmp_path, old, new, message):
    path = tmp_path / "copa.xml"
    assert old in COPA
    path.write_text(COPA.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_choices(path, "copa")


def test_a_question_that_is_no_text(tmp_path):
    with pytest.raises(ValueError, match="the question must be a text. Received: False"):
        read_choices(lines(tmp_path / "a.jsonl", item(question=False)))


def test_lines_of_old_macs(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"context\r1\ra\rb\rc\rd\r")
    assert read_choices(path, "hellaswag").answers == [["a", "b", "c", "d"]]
