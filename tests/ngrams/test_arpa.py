import gzip
import warnings

import numpy as np
import pytest

from kctx.ngrams import NGramLM, arpa_lines, read_arpa, write_arpa
from kctx.ngrams.arpa_writing import _numbers
from tests.ngrams.texts import CATS, random_lines

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:The Kneser-Ney discounts"),
]

GOOD = r"""
# made by hand

\data\
ngram 1=5
ngram 2=3
ngram 3=2

\1-grams:
-1.0	<unk>
-99	<s>	-0.3
-0.7	</s>
-0.5	a	-0.2
-0.6	b	-0.25

\2-grams:
-0.3	<s> a	-0.1
-0.4	a b	-0.15
-0.2	b </s>

\3-grams:
-0.1	<s> a b
-0.05	a b </s>

\end\
"""


def read(path, text, **options):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_arpa(path, progress=False, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.arpa"


def test_a_file_by_hand(path):
    model = read(path, GOOD)
    assert (model.order, model.sizes) == (3, [5, 3, 2])
    assert model.vocabulary == ["<unk>", "<s>", "</s>", "a", "b"]
    scores = model.score(["a b", "b a", "x"])
    # "b a": b after <s>, a after b, </s> after a; "x": <unk> after <s>, then </s> alone.
    expected = [-0.3 - 0.1 - 0.05, (-0.3 - 0.6) + (-0.25 - 0.5) + (-0.2 - 0.7), -0.3 - 1.0 - 0.7]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


VARIANTS = {
    "CRLF": GOOD.replace("\n", "\r\n"),
    "spaces for tabs": GOOD.replace("\t", " "),
    "tabs between words": GOOD.replace("a b", "a\tb"),
    "repeated separators": GOOD.replace("\t", " \t "),
    "blank lines between sections": GOOD.replace("\n\n", "\n\n \n\n"),
    "nothing before the head": GOOD[GOOD.index("\\data") :],
    "no line end at the end": GOOD.rstrip("\n"),
    "a 0 as the last back-off": GOOD.replace("<s> a b\n", "<s> a b\t0\n"),
    "all back-offs": GOOD.replace("</s>\n", "</s>\t0\n").replace("<unk>\n", "<unk>\t-0\n"),
    "SRILM's spelling": GOOD.replace("<unk>", "<UNK>"),
    "another order": GOOD.replace("-0.5	a	-0.2\n", "")
    .replace("\\2-", "-0.5	a	-0.2\n\n\\2-")
    .replace("-0.25\n\n-0.5", "-0.25\n-0.5"),
    "exponents": GOOD.replace("-0.05", "-5e-2").replace("-0.6", "-.6"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_what_readers_must_bear(path, name):
    assert VARIANTS[name] != GOOD
    texts = ["a b", "b a", "x", "", "a a b b a b"]
    expected = read(path, GOOD).score(texts)
    np.testing.assert_allclose(read(path, VARIANTS[name]).score(texts), expected, atol=1e-7)


BROKEN = [
    ("", "model.arpa is empty"),
    ("\n\n", "model.arpa is empty"),
    (GOOD.replace("#", "made"), r"line 2: expected \\data\\. Received: 'made"),
    (b"\x1f\x8b\x08", "its name must end with .gz"),
    ("mmap lm http://kheafield.com/code\n", "a binary file of KenLM"),
    (GOOD.replace("ngram 2=3", "ngram 3=3"), "line 6: counts must go up from order 1; expected"),
    (GOOD.replace("ngram 2=3", "ngram 2:3"), "line 6: expected `ngram N=count`"),
    (GOOD.replace("ngram 2=3", "ngram 2=-3"), "line 6: expected `ngram N=count`"),
    (GOOD.replace("ngram 1=5\nngram 2=3\nngram 3=2\n", ""), "from 1 to 6. Received: 0"),
    (GOOD.replace("ngram 2=3", "ngram 2=4"), r"line 20: expected a log probability, 2 words"),
    (GOOD.replace("ngram 2=3", "ngram 2=2"), r"line 19: expected \\3-grams:. Received: '-0.2"),
    (GOOD.replace("ngram 2=3", "ngram 2=999999999999"), "more than its .* bytes can hold"),
    (GOOD.replace("ngram 3=2", "ngram 3=3"), "line 24: expected a log probability, 3 words"),
    (GOOD.replace("\\3-grams:", "\\4-grams:"), r"line 21: expected \\3-grams:. Received: '\\\\4"),
    (GOOD[: GOOD.index("\\3-grams")], r"expected \\3-grams:. Received: the end of the file"),
    (GOOD[: GOOD.index("-0.05")], "the file ends 1 n-grams short of 2 of order 3"),
    (GOOD[: GOOD.index("<s> a b")], "line 22: expected a log probability, 3 words"),
    (GOOD.replace("\\end\\\n", ""), r"expected \\end\\. Received: the end of the file"),
    (GOOD + "more", r"line 26: nothing may follow \\end\\"),
    (GOOD.replace("-0.4", "nan"), "line 18: the log probability must be finite. Received: nan"),
    (GOOD.replace("-0.4", "inf"), "line 18: the log probability must be finite"),
    (GOOD.replace("-0.15", "NaN"), "line 18: the back-off weight must be finite"),
    (GOOD.replace("-0.15", "-inf"), "line 18: the back-off weight must be finite"),
    (GOOD.replace("-0.15", "1e39"), "line 18: the back-off weight must be finite. Received: 1e39"),
    (GOOD.replace("ngram 2=3", "ngram 2=" + "9" * 5000), "line 6: expected `ngram N=count`"),
    (GOOD.replace("-0.4", "-0,4"), "line 18: the log probability must be a number. .*'-0,4'"),
    (GOOD.replace("-0.4", "0.4"), "line 18: the log probability 0.4 is positive"),
    (GOOD.replace("a b\t-0.15", "a\t-0.15"), "line 18: the word '-0.15' is not listed"),
    (GOOD.replace("a b\t-0.15", "a b c d"), "line 18: expected a log probability, 2 words"),
    (GOOD.replace("a b\t-0.15", "a c\t-0.15"), "line 18: the word 'c' is not listed as a unigram"),
    (GOOD.replace("b	-0.25", "a	-0.25"), "line 14: the word 'a' is listed twice"),
    (GOOD.replace("b </s>\n\n", "a b\n\n"), "line 19: the n-gram 'a b' is listed in line 18"),
    (GOOD.replace("<s> a b", "b a b"), "line 22: the context of the n-gram 'b a b' is not listed"),
    (GOOD.replace("<s> a b", "<s> a b\t-0.1"), "line 22: n-grams of the highest order have no"),
    (GOOD.replace("<s>", "<S>"), "must list <s> among its unigrams"),
    (GOOD.replace("</s>", "</S>"), "must list </s> among its unigrams"),
]


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_broken_files_are_refused_by_line(path, place):
    text, message = BROKEN[place]
    assert text != GOOD
    with pytest.raises(ValueError, match=message) as raised:
        read(path, text)
    assert "model.arpa" in str(raised.value)


def test_a_cut_anywhere_is_noticed(path):
    end = GOOD.index("\\end\\") + 5
    for cut in range(end):
        with pytest.raises(ValueError, match="model.arpa"):
            read(path, GOOD[:cut])


def test_broken_gzip_files_are_named(tmp_path):
    packed = gzip.compress(GOOD.encode())
    for broken in (packed[:-9], packed[:10] + b"\xff" * 50, GOOD.encode()):
        (tmp_path / "model.arpa.gz").write_bytes(broken)
        with pytest.raises(ValueError, match="model.arpa.gz cannot be unpacked"):
            read_arpa(tmp_path / "model.arpa.gz", progress=False)


def test_lines_have_an_end(path, monkeypatch):
    """A small packed file may hold a line of any length."""
    monkeypatch.setattr(arpa_lines, "_LONGEST_LINE", 1000)
    monkeypatch.setattr(arpa_lines, "_BLOCK", 100)
    for text, line in (("x" * 5000, 1), (GOOD[: GOOD.index("-0.4")] + "x" * 5000, 18)):
        with pytest.raises(ValueError, match=f"model.arpa line {line}: it has more than 1,000 b"):
            read(path, text)


def test_positive_logs_can_be_read_as_zero(path):
    with pytest.warns(UserWarning, match="line 18: the log probability 0.4 is positive.* 0 more"):
        model = read(path, GOOD.replace("-0.4", "0.4"), positive="zero")
    assert model.probability("b", ["a"]) == 1
    with pytest.raises(ValueError, match='`positive` must be "error" or "zero"'):
        read(path, GOOD, positive="no")


def test_a_file_without_unknown_word(path):
    text = GOOD.replace("-1.0	<unk>\n", "").replace("ngram 1=5", "ngram 1=4")
    with pytest.warns(UserWarning, match="lists no <unk>: unknown words get log10 p = -100"):
        model = read(path, text)
    assert model.vocabulary == ["<unk>", "<s>", "</s>", "a", "b"]
    assert model.score(["x"])[0] == pytest.approx(-0.3 - 100 - 0.7)


def test_endings_that_are_not_listed_are_put_in(path):
    """SRILM prunes "a b" though "<s> a b" stays; the score is what backing off gives."""
    text = GOOD.replace("-0.4	a b	-0.15\n", "").replace("-0.05	a b </s>\n", "")
    model = read(path, text.replace("ngram 2=3", "ngram 2=2").replace("ngram 3=2", "ngram 3=1"))
    assert model.sizes == [5, 3, 1]
    assert model.score(["a b"])[0] == pytest.approx(-0.3 - 0.1 - 0.2, abs=1e-6)
    assert model.score(["b a b"], per_token=True)[0][2] == pytest.approx(-0.2 - 0.6, abs=1e-6)


def test_words_of_any_bytes_come_back(tmp_path):
    lines = [
        b"caf\xc3\xa9 caf\xe9 \xff\xfe \x0b a\x0cb \xc2\xa0 \xe3\x80\x80",
        b"\\data\\ \\end\\ # ngram 1=5 -99 \\1-grams: nan",
        b"x" * 100_000 + b" " + b"y" * 47 + b" " + b"z" * 8,
    ]
    model = NGramLM.train(lines=lines, order=3, progress=False)
    for name in ("model.arpa", "model.arpa.gz"):
        write_arpa(model, tmp_path / name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = read_arpa(tmp_path / name, progress=False)
        assert again.sizes == model.sizes and sorted(again.vocabulary) == sorted(model.vocabulary)
        np.testing.assert_allclose(again.score(lines), model.score(lines), atol=1e-6)
        assert again.perplexity(lines=lines).oov == 0


@pytest.mark.parametrize(
    ("smoothing", "options"),
    [
        ("mle", {}),
        ("add_k", {"k": 0.1}),
        ("katz", {"katz_limit": 3}),
        ("jelinek_mercer", {"weights": (0.4, 0.3, 0.2, 0.1)}),
        ("kneser_ney", {"prune": [0, 1, 1]}),
    ],
)
@pytest.mark.filterwarnings("ignore:The Good-Turing discounts")
def test_all_smoothings_survive_the_file(tmp_path, smoothing, options):
    lines = random_lines(0, 300, words=30)
    model = NGramLM.train(lines=lines, order=3, smoothing=smoothing, progress=False, **options)
    model.write_arpa(tmp_path / "a.arpa")
    again = NGramLM.read_arpa(tmp_path / "a.arpa", progress=False)
    rng = np.random.default_rng(0)
    contexts = rng.integers(0, len(model.vocabulary), (50, 2))
    moved = again.ids([model.vocabulary[i] for i in contexts.ravel()]).reshape(50, 2)
    expected, found = model.distribution(contexts), again.distribution(moved)
    np.testing.assert_allclose(
        found[:, again.ids(model.vocabulary)], expected, rtol=1e-6, atol=1e-9
    )


def test_writing_is_whole_or_not_at_all(tmp_path, monkeypatch):
    model = NGramLM.train(lines=CATS, order=2, progress=False)
    model.write_arpa(tmp_path / "a.arpa")
    before = (tmp_path / "a.arpa").read_bytes()
    monkeypatch.setattr("kctx.ngrams.arpa_writing._numbers", lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.write_arpa(tmp_path / "a.arpa")
    assert (tmp_path / "a.arpa").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.arpa"]


def test_the_joint_mixture_has_no_arpa_form(tmp_path):
    options = {"smoothing": "jelinek_mercer", "held_out": CATS, "buckets": "joint"}
    model = NGramLM.train(lines=CATS, order=3, progress=False, **options)
    with pytest.raises(ValueError, match="no ARPA form"):
        model.write_arpa(tmp_path / "a.arpa")


def test_numbers_as_text():
    values = np.float32([0, -0.0, -1, -0.5, -12.25, 0.125, -1e-7, -np.inf, -98.5, -9.99999999])
    texts = [bytes(row).replace(b"\r", b"").decode() for row in _numbers(values)]
    assert texts[:4] == ["0", "0", "-1.00000000", "-0.50000000"]
    assert texts[4:8] == ["-12.25000000", "0.12500000", "-0.00000010", "-99.00000000"]
    assert texts[8:] == ["-98.50000000", "-10.00000000"]
    values = -np.random.default_rng(0).random(10_000).astype(np.float32) * 9 - np.float32(0.13)
    again = np.float32([bytes(row).replace(b"\r", b"") for row in _numbers(values)])
    assert np.array_equal(again, values)
