"""WordPiece against golden strings, a plain Python reference, and stored ids of other libraries."""

import json
import random
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kctx.tokenizers import WordPieceTokenizer
from kctx.tokenizers.unicode_tables import ASSIGNED, is_punctuation, normalize, unicode_tables
from kctx.tokenizers.words import split_words
from tests.tokenizers import golden, reference

pytestmark = pytest.mark.once

PARITY = Path(__file__).parent.parent / "parity" / "wordpiece_multilingual.npz"


def make(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a golden vocabulary serves cased and uncased alike
        return WordPieceTokenizer(golden.VOCABULARY, **options)


@pytest.fixture(scope="module")
def uncased():
    return make()


@pytest.fixture(scope="module")
def cased():
    return make(lowercase=False)


def tokens(tokenizer, text):
    return [tokenizer.id_to_token(index) for index in tokenizer(text).numpy()]


@pytest.mark.parametrize("text", golden.UNCASED)
def test_golden_uncased(uncased, text):
    assert tokens(uncased, text) == golden.UNCASED[text].split()


@pytest.mark.parametrize("text", golden.CASED)
def test_golden_cased(cased, text):
    assert tokens(cased, text) == golden.CASED[text].split()


def test_where_hugging_face_differs():
    """A limit of 100 characters a word, and special tokens found in the text, are settings."""
    assert tokens(make(max_word_chars=100), "x" * 101) == ["[UNK]"]
    assert tokens(make(special_tokens_in_text=True), "[CLS] hello [MASK]") == [
        "[CLS]",
        "hello",
        "[MASK]",
    ]


def test_special_tokens_inside_words_and_overlaps():
    tokenizer = make(special_tokens_in_text=True)
    assert tokens(tokenizer, "a[MASK]b [[MASK]]") == [
        "a",
        "[MASK]",
        "b",
        "[UNK]",
        "[MASK]",
        "[UNK]",
    ]
    assert tokens(tokenizer, "[mask] [MASK") == ["[UNK]"] * 5
    assert tokens(tokenizer, "[MASK]\u200db\u0301[SEP][SEP]") == ["[MASK]", "b", *["[SEP]"] * 2]
    _, starts, ends = tokenizer.tokenize_with_offsets("é [MASK]b")
    assert list(zip(starts.numpy(), ends.numpy(), strict=True)) == [(0, 1), (2, 8), (8, 9)]
    assert tokenizer(["[MASK]", "", "a"]).to_list() == [[4], [], [25]]


def test_accents_and_case_are_separate():
    assert tokens(make(lowercase=True, strip_accents=False), "Café") == ["café"]
    assert tokens(make(lowercase=False, strip_accents=True), "café CAFÉ") == ["cafe", "[UNK]"]


# Characters by the hundred that have broken tokenizers, and random ones of every plane.
CURIOUS = (
    "aAbBzZ019 .,!?'\"-_$€#@中国人日本のカタ한국ßẞİıſΣσςΑΆάΟΔΟΣǅʰª²½…—·\u00a0\u00ad"
    "\u0085\u0000\ufffd"
    "\u0300\u0301\u0308\u0345\u05b0\u0e31\u0e33\u200b\u200d\u202e\u2028\u2029\u3000\ufe0f\ufeff"
    "\u1e9b\u0323\u2260\u212b\uf900\ufb01\U0001f468\U0001f3fd\U0001d15e\U00020000\U0002f800"
    "\U000e0041\ue000\u0378\u0661\u0958\u09cb\u1100\u1161\u11a8\uac01ꙋⅣⓐªﬀ"
)


def random_text(rng):
    size = rng.randrange(1, 24)
    characters = []
    while len(characters) < size:
        code = rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x110000)])
        character = rng.choice(CURIOUS) if rng.random() < 0.6 else chr(code)
        if not 0xD800 <= ord(character) <= 0xDFFF:
            characters.append(character)
    return "".join(characters)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
def test_any_unicode_as_the_reference(lowercase, strip_accents):
    rng = random.Random(f"{lowercase}{strip_accents}")
    texts = [random_text(rng) for _ in range(3000)]
    # Every normalised character is a token, alone and inside a word, but for one in seven.
    alphabet = {x for text in texts for x in normalize(text, lowercase, strip_accents)}
    alphabet = sorted(x for x in alphabet if ord(x) % 7)
    vocabulary = [*golden.VOCABULARY[:5], *alphabet, *(f"##{x}" for x in alphabet)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = WordPieceTokenizer(vocabulary, lowercase, strip_accents)
    known = set(vocabulary)
    ids = tokenizer(texts).to_list()
    for text, row in zip(texts, ids, strict=True):
        expected = reference.tokenize(text, known, lowercase, strip_accents)
        assert [vocabulary[index] for index in row] == expected, ascii(text)


def words_of(texts, lowercase=True, strip_accents=True):
    """Words of each text, before they are cut into pieces."""
    tables = unicode_tables(lowercase, strip_accents)
    found = split_words(tf.constant([text.encode() for text in texts]), tables)
    rows = tf.RaggedTensor.from_row_splits(found.words, found.row_splits).to_list()
    return [[word.decode() for word in row] for row in rows]


def test_every_code_point_as_the_reference():
    texts = [f"A{chr(code)}B" for code in ASSIGNED if not 0xD800 <= code <= 0xDFFF]
    for start in range(0, len(texts), 20000):
        batch = texts[start : start + 20000]
        for text, row in zip(batch, words_of(batch), strict=True):
            assert row == list(reference.words(text)), ascii(text)


def test_marks_that_stay_are_ordered():
    """Viramas, tone marks and stems come in canonical order, over dropped code points too."""
    assert words_of(["a\u302e\u1b44 \u302e\u200d\u1b44"]) == [["a\u1b44\u302e", "\u1b44\u302e"]]
    marks = [chr(code) for code in ASSIGNED if unicodedata.combining(chr(code))]
    staying = [mark for mark in marks if unicodedata.category(mark) != "Mn"]
    rng = random.Random(3)
    others = "aΣ. \u200d中é\U0001d160"
    texts = [
        "".join(rng.choice(rng.choice([marks, staying, staying, others])) for _ in range(7))
        for _ in range(3000)
    ]
    assert words_of(texts) == [list(reference.words(text)) for text in texts]


def test_final_sigma():
    """Σ at the end of a word is ς, apostrophes and accents looked through, as in `str.lower`."""
    alphabet = "αοδυσςεικάύ'.ab"
    vocabulary = [*golden.VOCABULARY[:5], *alphabet, *(f"##{x}" for x in alphabet)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = WordPieceTokenizer(vocabulary, strip_accents=False)
    for text in [
        "ΟΔΟΣ",
        "ΟΔΥΣΣΕΥΣ ΣΑΣ",
        "Σ",
        "Σ ΑΣ",
        "ΑΣ'Α ΑΣ' ΑΣ.",
        "ΑΣ中ΑΣ",
        "ΑΣ\u0301Α",
        "ΑΣ\u0301",
    ]:
        assert tokens(tokenizer, text) == reference.tokenize(text, set(vocabulary), True, False), (
            text
        )


def test_expansions_hold_no_punctuation():
    """Why one bit a code point is enough: what becomes several code points has none of them."""
    for code in range(0x110000):
        character = chr(code)
        for lowercase in (True, False):
            normalized = normalize(character, lowercase, True)
            if len(normalized) > 1:
                assert not any(map(is_punctuation, normalized)), hex(code)


def test_offsets_point_into_the_original(uncased):
    """The text at an offset normalises to the token, whatever stands before it."""
    rng = random.Random(7)
    texts = [random_text(rng) for _ in range(500)]
    texts += ["Ünïcödé 中文 ab", "x" * 201, "🙂\u200d🙂ok", "\0\0a\u00adb c", "İstanbul", "한국 ok"]
    ids, starts, ends = (part.to_list() for part in uncased.tokenize_with_offsets(texts))
    assert ids == uncased(texts).to_list()
    for text, row, begin, end in zip(texts, ids, starts, ends, strict=True):
        assert begin == sorted(begin)
        for index, first, last in zip(row, begin, end, strict=True):
            assert 0 <= first < last <= len(text)
            token = uncased.id_to_token(index).removeprefix("##")
            normalized = "".join(reference.words(text[first:last]))
            if "\u1100" <= token < "\u1200":  # one of the letters of a Hangul syllable
                assert token in normalized
            elif token != "[UNK]":
                assert normalized == token, ascii(text)


def test_offsets_by_hand(uncased):
    _, starts, ends = uncased.tokenize_with_offsets("  Hello,\u00ad 中国 unaffable")
    assert list(zip(starts.numpy(), ends.numpy(), strict=True)) == [
        (2, 7),
        (7, 8),
        (10, 11),
        (11, 12),
        (13, 15),
        (15, 18),
        (18, 22),
    ]


def test_ranks_and_types(uncased):
    hello = [13]
    assert uncased("hello").numpy().tolist() == hello
    assert uncased(b"hello").numpy().tolist() == hello
    assert uncased(["hello", ""]).to_list() == [hello, []]
    assert uncased(np.array(["hello"])).to_list() == [hello]
    assert uncased(tf.constant([["hello", "a"]])).to_list() == [[hello, [25]]]
    assert uncased([["hello"], [], ["a", "hello"]]).to_list() == [[hello], [], [[25], hello]]
    assert uncased([]).to_list() == []
    assert uncased("").shape == (0,)
    assert uncased("hello").dtype == tf.int32


def test_invalid_bytes_and_surrogates_are_ignored(uncased):
    assert tokens(uncased, b"hel\xfflo\xc3 a\xed\xa0\x80b") == ["hello", "ab"]
    assert tokens(uncased, "hel\ud800lo a") == ["hello", "a"]
    _, starts, _ = uncased.tokenize_with_offsets("\ud800 hello a")
    assert starts.numpy().tolist() == [2, 8]


def test_other_types_are_refused(uncased):
    with pytest.raises(TypeError, match="Received: 3 of type int"):
        uncased([3])
    with pytest.raises(TypeError, match="must hold strings. Received: int32"):
        uncased(tf.constant([3]))
    with pytest.raises(ValueError, match="rank 0, 1 or 2. Received: rank 3"):
        uncased(tf.constant([[["a"]]]))


def test_same_in_a_pipeline(uncased):
    texts = [*golden.UNCASED, "hello 中国"]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(5).map(uncased)
    assert [row for batch in dataset for row in batch.to_list()] == uncased(texts).to_list()
    one_by_one = tf.data.Dataset.from_tensor_slices(texts).map(uncased)
    assert [row.numpy().tolist() for row in one_by_one] == uncased(texts).to_list()


def test_same_in_a_saved_model(uncased, tmp_path):
    """In a process that knows nothing of this library."""
    module = tf.Module()
    signature = [tf.TensorSpec([None], tf.string)]
    module.tokenize = tf.function(
        lambda text: [part.to_tensor(-1) for part in uncased.tokenize_with_offsets(text)], signature
    )
    tf.saved_model.save(module, str(tmp_path))
    texts = [text for text in golden.UNCASED if "\0" not in text]
    (tmp_path / "texts.txt").write_bytes("\x1e".join(texts).encode())
    script = f"""
import json, tensorflow as tf, tensorflow_text
texts = open({str(tmp_path / "texts.txt")!r}, "rb").read().split(b"\\x1e")
loaded = tf.saved_model.load({str(tmp_path)!r})
parts = [part.numpy().tolist() for part in loaded.tokenize(texts)]
assert loaded.tokenize(tf.zeros([0], tf.string))[0].shape[0] == 0
print(json.dumps([[[i for i in row if i >= 0] for row in part] for part in parts]))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    expected = [part.to_list() for part in uncased.tokenize_with_offsets(texts)]
    assert last_json(result.stdout) == expected


def last_json(output):
    return json.loads(output.decode().strip().splitlines()[-1])


def test_parity_with_stored_ids():
    """Ids that Hugging Face's tokenizer gave, see tests/parity/make_wordpiece.py."""
    stored = np.load(PARITY)
    texts = bytes(stored["texts"]).decode().split("\x1e")
    for setting, options in {"uncased": {}, "cased": {"lowercase": False}}.items():
        vocabulary = bytes(stored[f"{setting}_vocabulary"]).decode().split("\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tokenizer = WordPieceTokenizer(vocabulary, max_word_chars=100, **options)
        splits = stored[f"{setting}_splits"]
        expected = np.split(stored[f"{setting}_ids"], splits[1:-1])
        assert tokenizer(texts).to_list() == [row.tolist() for row in expected]


@pytest.mark.parametrize(
    ("file", "vocabulary"),
    [
        ("brown/brown_part.txt", "bert-base-uncased"),
        ("imdb/train.tsv", "bert-base-uncased"),
        ("peopledaily_text/sentences-part.txt", "bert-base-chinese"),
    ],
)
def test_real_text_as_the_rust_tokenizer(kctx_data, file, vocabulary):
    import tokenizers

    path = str(kctx_data / "tokenizers" / vocabulary / "vocab.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = WordPieceTokenizer(path, max_word_chars=100)
    theirs = tokenizers.BertWordPieceTokenizer(path, lowercase=True)
    lines = (kctx_data / file).read_text(encoding="utf-8").split("\n")[:1500]
    expected = [x.ids for x in theirs.encode_batch(lines, add_special_tokens=False)]
    assert ours(lines).to_list() == expected


def test_detokenize(uncased):
    assert uncased.detokenize(uncased("Hello, unaffable World!")) == "hello, unaffable world!"
    assert uncased.detokenize(uncased("中国人 日本の")) == "中国人日本の"
    assert uncased.detokenize([[2, 13, 3, 0, 0], [25]]) == ["[CLS] hello [SEP]", "a"]
    assert uncased.detokenize([2, 13, 4, 3, 0], skip_special_tokens=True) == "hello"
    assert uncased.detokenize([]) == ""
    with pytest.raises(IndexError, match="Received: 91"):
        uncased.detokenize([91])


def test_config_and_files_round_trip(uncased, tmp_path):
    tokenizer = make(lowercase=False, max_word_chars=50, special_tokens_in_text=True)
    tokenizer.save_assets(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = WordPieceTokenizer.from_folder(tmp_path)
    assert loaded.get_config() == tokenizer.get_config()
    assert loaded.vocabulary == golden.VOCABULARY
    assert tokens(loaded, "hello [MASK]") == ["hello", "[MASK]"]


def test_vocabulary_files(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join(golden.VOCABULARY).encode())
    assert make_quiet(path).vocabulary == golden.VOCABULARY
    path.write_bytes(b"[PAD]\n[UNK]\n\xff\n")
    with pytest.raises(ValueError, match=r"vocab\.txt is not valid utf-8: the byte at offset 12"):
        WordPieceTokenizer(path)
    with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
        WordPieceTokenizer(tmp_path / "missing.txt")


def make_quiet(vocabulary):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WordPieceTokenizer(vocabulary)


def test_vocabulary_errors():
    specials = golden.VOCABULARY[:5]
    with pytest.raises(ValueError, match="Received: none"):
        WordPieceTokenizer([])
    with pytest.raises(ValueError, match="repeat a token. Received: 'a' at 5 and at 6"):
        WordPieceTokenizer([*specials, "a", "a"])
    with pytest.raises(ValueError, match=r"mask_token='\[MASK\]'"):
        WordPieceTokenizer(specials[:4])
    with pytest.raises(ValueError, match="`max_word_chars` must be at least 1. Received: 0"):
        WordPieceTokenizer(specials, max_word_chars=0)


def test_tokens_that_cannot_be_stored():
    specials = golden.VOCABULARY[:5]
    with pytest.raises(ValueError, match=r"256 bytes nor hold NUL. Received: 'a\\x00' at 5"):
        WordPieceTokenizer([*specials, "a\0"])
    with pytest.raises(ValueError, match="256 bytes nor hold NUL. Received: 'яя"):
        WordPieceTokenizer([*specials, "я" * 129])
    assert WordPieceTokenizer([*specials, "##" + "я" * 128]).vocabulary_size == 6


def test_special_tokens_that_overlap():
    vocabulary = [*golden.VOCABULARY[:4], "[[CLS]"]
    WordPieceTokenizer(vocabulary, mask_token="[[CLS]")
    with pytest.raises(ValueError, match=r"must not overlap. Received: '\[\[CLS\]' and '\[CLS\]'"):
        WordPieceTokenizer(vocabulary, mask_token="[[CLS]", special_tokens_in_text=True)
    with pytest.raises(ValueError, match="Received: 'aba' and 'aba'"):
        WordPieceTokenizer(
            [*golden.VOCABULARY[:4], "aba"], mask_token="aba", special_tokens_in_text=True
        )


def test_warns_of_unreachable_entries():
    with pytest.warns(UserWarning, match=r"2 of 8 .* lowercase=True.*'Café', 'é'.*cased vocab"):
        WordPieceTokenizer([*golden.VOCABULARY[:5], "Café", "é", "a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WordPieceTokenizer([*golden.VOCABULARY[:5], "Café", "é", "a"], lowercase=False)
        # No setting reaches these: nobody is warned of them.
        WordPieceTokenizer([*golden.VOCABULARY[:5], "[unused1]", "<S>", "a"])
