"""Questions on contexts: answers at, near and off their offsets."""

import json

import pytest

from kctx.data import Answer, read_squad

pytestmark = pytest.mark.once

CONTEXT = "The 𝕏 café, the cat."  # 𝕏 is one code point, two units of UTF-16


def question(identity, *answers, **more):
    return {
        "id": identity,
        "question": f"What is {identity}?",
        "answers": [{"text": text, "answer_start": start} for text, start in answers],
        **more,
    }


def write(path, *questions, context=CONTEXT):
    paragraphs = [{"context": context, "qas": list(questions)}]
    content = {"version": "x", "data": [{"title": "t", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_version_1(tmp_path):
    path = write(
        tmp_path / "a.json", question("a", ("café", 6), ("cat", 16)), question("b", ("𝕏", 4))
    )
    examples = read_squad(path)
    assert examples.ids == ["a", "b"] and examples.questions[0] == "What is a?"
    assert examples.contexts == [CONTEXT] * 2
    assert examples.answers == [[Answer("café", 6, 10), Answer("cat", 16, 19)], [("𝕏", 4, 5)]]
    assert examples.gold_texts == [["café", "cat"], ["𝕏"]] and len(examples) == 2
    for answers in examples.answers:
        assert all(CONTEXT[a.start : a.end] == a.text for a in answers)


def test_version_2(tmp_path):
    impossible = {"is_impossible": True, "plausible_answers": [{"text": "x", "answer_start": 0}]}
    path = write(
        tmp_path / "a.json",
        question("a", **impossible),
        question("b", ("cat", 16), is_impossible=False),
    )
    examples = read_squad(path)
    assert examples.answers == [[], [("cat", 16, 19)]] and examples.gold_texts[0] == []
    assert examples.report["impossible"] == 1 and examples.report["skipped"] == {}
    assert "2 questions, 1 without an answer" in examples.describe()


def test_answers_off_their_offset_are_skipped_and_reported(tmp_path):
    path = write(
        tmp_path / "a.json",
        question("off", ("cat", 15)),
        question("minus", ("cat", -1)),
        question("absent", ("dog", 3)),
        question("one", ("cat", 0), ("café", 6)),
        question("none"),
        question("blank", (" ", 3)),
        question("good", ("the", 12)),
    )
    examples = read_squad(path)
    assert examples.ids == ["one", "good"]
    assert examples.answers[0] == [("café", 6, 10)] and examples.gold_texts[0] == ["cat", "café"]
    report = examples.report
    assert report["skipped"] == {
        "answer not at its offset": ["off", "minus", "absent"],
        "no answer given": ["none", "blank"],
    }
    assert report["questions"] == 7 and report["dropped_answers"] == ["one"]
    assert "skipped: 3 (answer not at its offset): off, minus, absent" in examples.describe()
    # a negative offset must not count from the end
    assert read_squad(write(tmp_path / "b.json", question("x", ("The", 0)))).answers == [
        [("The", 0, 3)]
    ]


def test_realigning_takes_what_occurs_just_once(tmp_path):
    path = write(
        tmp_path / "a.json",
        question("once", ("cat", 0)),
        question("twice", ("e", -1)),
        question("absent", ("dog", 3)),
    )
    examples = read_squad(path, realign=True)
    assert examples.ids == ["once"] and examples.answers == [[("cat", 16, 19)]]
    assert examples.report["realigned"] == ["once"]
    assert examples.report["skipped"] == {"answer not at its offset": ["twice", "absent"]}


def test_keeping_what_was_not_located_for_the_metrics(tmp_path):
    path = write(tmp_path / "a.json", question("off", ("cat", 15)), question("good", ("cat", 16)))
    examples = read_squad(path, unlocated="keep")
    assert examples.ids == ["off", "good"] and examples.answers[0] == []
    assert examples.gold_texts == [["cat"], ["cat"]]
    assert examples.report["kept_unlocated"] == {"answer not at its offset": ["off"]}
    assert examples.report["impossible"] == 0


@pytest.mark.parametrize("context", ["", " \n"])
def test_an_empty_context(tmp_path, context):
    path = write(tmp_path / "a.json", question("a", ("x", 0)), context=context)
    with pytest.raises(ValueError, match="holds no question to use. Skipped: {'empty context': 1}"):
        read_squad(path)
    assert read_squad(path, unlocated="keep").answers == [[]]
    assert read_squad(path, labelled=False).contexts == [context]


def test_without_labels(tmp_path):
    path = write(tmp_path / "a.json", question("a", ("x", 99)), {"id": 7, "question": "q"})
    examples = read_squad(path, labelled=False)
    assert examples.ids == ["a", "7"] and examples.answers is None and examples.gold_texts is None


def test_marks_and_halves_of_surrogates(tmp_path):
    path = write(tmp_path / "a.json", question("a", ("\ud83dx", 0)), context="\ud83dx y")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    examples = read_squad(path)
    assert examples.contexts == ["\ufffdx y"] and examples.answers == [[("\ufffdx", 0, 2)]]


def test_ids_that_occur_twice_are_reported(tmp_path):
    path = write(tmp_path / "a.json", question("a", ("cat", 16)), question("a", ("café", 6)))
    assert read_squad(path).report["duplicate_ids"] == ["a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object with a list `data`"),
        ('{"data": [{"paragraphs": 1}]}', "article 1: expected an object with a list `paragraphs`"),
        (
            '{"data": [{"paragraphs": [{"qas": []}]}]}',
            "article 1, paragraph 1: `context` must be a text. Received: None",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1"}]}]}]}',
            "paragraph 1, question 1: `question` must be a text",
        ),
        ('{"data": []}', "holds no question to use. Skipped: none"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_other_forms(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_squad(path)


def test_bad_answers(tmp_path):
    path = write(tmp_path / "a.json", question("a", ("cat", "16")))
    with pytest.raises(ValueError, match="`answer_start` must be an integer. Received: '16'"):
        read_squad(path)
    path = write(tmp_path / "a.json", question("a", (3, 16)))
    with pytest.raises(ValueError, match="question 1: `text` must be a text. Received: 3"):
        read_squad(path)
    with pytest.raises(ValueError, match="`unlocated` must be one of"):
        read_squad(path, unlocated="drop")


def test_split_keeps_contexts_together(tmp_path):
    paragraphs = [
        {"context": f"c{i}", "qas": [question(f"{i}-{j}", ("c", 0)) for j in range(3)]}
        for i in range(6)
    ]
    content = {"data": [{"paragraphs": paragraphs}]}
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    rest, held_out = read_squad(tmp_path / "a.json").split(every=3)
    assert set(held_out.contexts) == {"c2", "c5"} and len(held_out) == 6 and len(rest) == 12
    assert not set(rest.contexts) & set(held_out.contexts)


def test_real_sets(kctx_data):
    examples = read_squad(kctx_data / "squad/dev-v2.0-part.json")
    assert len(examples) == 4218 and examples.report["impossible"] == 2140
    assert examples.report["skipped"] == {} and not examples.report["dropped_answers"]
    path = kctx_data / "cmrc2018/cmrc2018_dev-part.json"
    chinese = read_squad(path)
    assert len(chinese) == 1581
    assert chinese.report["skipped"] == {
        "answer not at its offset": ["DEV_101_QUERY_3", "DEV_110_QUERY_2", "DEV_110_QUERY_3"]
    }
    given = sum(len(texts) for texts in read_squad(path, unlocated="keep").gold_texts)
    found = sum(len(answers) for answers in chinese.answers)
    assert (given, given - found) == (4752, 135)
    assert len(read_squad(path, realign=True)) == 1584


def test_numbers_without_end_and_flags_that_are_none(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"data": ' + "9" * 5000 + "}", encoding="utf-8")
    with pytest.raises(ValueError, match="a.json: not JSON .*4300 digits"):
        read_squad(path)
    path = write(path, question("a", ("cat", 16), is_impossible="false"))
    with pytest.raises(ValueError, match="`is_impossible` must be a bool. Received: 'false'"):
        read_squad(path)
