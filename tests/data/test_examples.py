import itertools

import numpy as np
import pytest
import tensorflow as tf

from kctx.data import ExampleStream, batch_indices, read_examples

pytestmark = pytest.mark.once


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_tsv_by_number(tmp_path):
    path = write(tmp_path / "a.tsv", 'good "film"\t1\nbad\t0\r\n\nfine\t1\n')
    examples = read_examples(path, text=0, label=1)
    assert examples.texts == ['good "film"', "bad", "fine"]
    assert examples.labels == [1, 0, 1] and examples.label_names == ["0", "1"]
    assert examples.lines == [1, 2, 4] and examples.pairs is None and len(examples) == 3


def test_csv_with_quotes_line_breaks_and_names(tmp_path):
    path = write(tmp_path / "a.csv", '\ufeffa,b,y\n"one, two","x ""y""\nz",pos\nthree,four,neg\n')
    examples = read_examples(path, text="a", pair="b", label="y")
    assert examples.texts == ["one, two", "three"] and examples.pairs == ['x "y"\nz', "four"]
    assert examples.label_names == ["neg", "pos"] and examples.labels == [1, 0]
    assert examples.lines == [2, 4]


def test_jsonl(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"t": "a b", "y": 2}\n\n{"t": "中", "y": 10}\n')
    examples = read_examples(path, text="t", label="y")
    assert examples.texts == ["a b", "中"] and examples.label_names == ["2", "10"]
    assert read_examples(path, text="t", label="y", regression=True).labels == [2.0, 10.0]
    with pytest.raises(
        ValueError, match=r"a\.jsonl, line 1: no value for 'x'. Its keys: \['t', 'y'\]"
    ):
        read_examples(path, text="x")
    write(path, '{"t": "a"}\n{"t": \n')
    with pytest.raises(ValueError, match="line 2: not JSON"):
        read_examples(path, text="t")
    write(path, '{"t": "a", "y": null}\n{"t": "b"}\n{"t": "c", "y": true}\n')
    examples = read_examples(path, text="t", label="y", allow_unlabelled=True)
    assert examples.labels == [None, None, 0] and examples.label_names == ["true"]
    for value, received in (('["a"]', r"\['a'\]"), ('{"a": 1}', r"\{'a': 1\}")):
        write(path, f'{{"t": "a", "y": 0.5}}\n{{"t": "b", "y": {value}}}\n')
        with pytest.raises(
            ValueError, match=rf"a\.jsonl, line 2: 'y' must be a text, .* Received: {received}"
        ):
            read_examples(path, text="t", label="y")
    write(path, '{"t": 3}\n')
    with pytest.raises(ValueError, match="line 1: 't' is not a text. Received: 3"):
        read_examples(path, text="t")
    write(path, "[1]\n")
    with pytest.raises(ValueError, match="expected a JSON object"):
        read_examples(path, text="t")


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("text\tlabel\na\t0\nb\t1\nc\t0\nd\t1\n", {}, 4),
        ("a\t0\nb\t1\nc\t0\nd\t1\n", {}, 4),
        ("text\tlabel\na\t0\n", {"label_names": ["0", "1"]}, 1),
        ("text\tlabel\na\t0.5\n", {"regression": True}, 1),
        ("a\t0.5\nb\t2\n", {"regression": True}, 2),
        ("text\tlabel\na\t0\nb\t1\nc\t0\nd\t1\n", {"header": False}, 5),
        ("a\t1 \nb\t0\n", {"label_names": ["0", "1"]}, 2),
    ],
)
def test_header(tmp_path, content, options, expected):
    path = write(tmp_path / "a.tsv", content)
    assert len(read_examples(path, text=0, label=1, **options)) == expected


@pytest.mark.parametrize("options", [{}, {"label_names": ["0", "1"]}, {"regression": True}])
def test_a_first_row_without_label_is_no_header(tmp_path, options):
    path = write(tmp_path / "a.tsv", "a\t \nb\t1\nc\t0\nd\t1\ne\t0\n")
    with pytest.raises(ValueError, match="line 1: the label is missing"):
        read_examples(path, text=0, label=1, **options)


def test_a_second_file_is_read_as_the_first(tmp_path):
    """So a first row whose label is unknown is an error and not a header."""
    first = read_examples(write(tmp_path / "a.tsv", "a\t0\nb\t1\nc\t0\nd\t1\n"), label=1)
    assert not first.has_header and not first.take([0]).has_header
    options = {"label": 1, "label_names": first.label_names}
    path = write(tmp_path / "b.tsv", "a\t2\nb\t1\n")
    assert read_examples(path, **options).has_header
    with pytest.raises(ValueError, match="line 1: unknown label '2'"):
        read_examples(path, header=first.has_header, **options)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a\t0\n", {"header": "no"}, "`header` must be True, False or"),
        ("a\t0\n", {"quoting": "no"}, "`quoting` must be True, False or"),
        ("a\t0\n", {"label_names": ["0", "0"]}, "`label_names` must be a list of different names"),
        ("a\t0\n", {"label_names": "01"}, "`label_names` must be a list of different names"),
        ("a\t1e300\n", {"regression": True, "header": False}, "must be a finite number"),
        ("t\tl\tl\na\tx\ty\n", {"text": "t", "label": "l"}, "2 columns are called 'l'"),
        ("good\t0\n", {"text": "t"}, "Without a header, number the columns from 0"),
    ],
)
def test_arguments_and_columns_that_would_lose_rows(tmp_path, content, options, message):
    path = write(tmp_path / "a.tsv", content)
    with pytest.raises(ValueError, match=message):
        read_examples(path, **{"text": 0, "label": 1, **options})


@pytest.mark.parametrize("labels", [("0.0", "1.0"), ("1", "2.5"), ("1e3", "2"), ("3.8", "")])
def test_decimal_numbers_are_no_classes(tmp_path, labels):
    path = write(tmp_path / "a.tsv", "".join(f"t{i}\t{label}\n" for i, label in enumerate(labels)))
    options = {"label": 1, "header": False, "allow_unlabelled": True}
    decimal = next(label for label in labels if not label.isdigit())
    with pytest.raises(ValueError, match=rf"a\.tsv, line \d: .*'{decimal}'.*`regression=True`"):
        read_examples(path, **options)
    assert read_examples(path, **options, regression=True).labels[0] == float(labels[0])
    names = [label for label in labels if label]
    assert read_examples(path, **options, label_names=names).labels[0] == 0


@pytest.mark.parametrize("label", ["9" * 5000, "[" * 100_000])
def test_absurd_json_names_file_and_line(tmp_path, label):
    path = write(tmp_path / "a.jsonl", f'{{"t": "a", "l": 1}}\n{{"t": "a", "l": {label}}}\n')
    with pytest.raises(ValueError, match="a.jsonl, line 2: not JSON"):
        read_examples(path, text="t", label="l")


@pytest.mark.parametrize("argument", [{"window": -1}, {"batch_size": 2.5}, {"seed": None}])
def test_bad_arguments_of_a_stream(tmp_path, argument):
    name, value = next(iter(argument.items()))
    with pytest.raises(ValueError, match=f"`{name}` must be an integer .*Received: {name}={value}"):
        ExampleStream(examples_of(tmp_path), preprocess, **argument)


def test_half_surrogates_of_json_become_replacement_characters(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"t": "a\\ud83d", "l": "\\ud83d\\ude00"}\n')
    examples = read_examples(path, text="t", label="l")
    assert (examples.texts, examples.label_names) == (["a\ufffd"], ["😀"])


def test_a_file_of_the_other_format_is_told_by_its_separators(tmp_path):
    tabs = write(tmp_path / "a.csv", "one, two\tx, y\t0\nthree\tz\t1\n")
    with pytest.raises(ValueError, match=r"no column 4, the row has 3 .* tsv \(--format tsv\)"):
        read_examples(tabs, text=4)
    commas = write(tmp_path / "a.tsv", "text,label\na,0\n")
    with pytest.raises(ValueError, match=r"no column 'label'.* be csv \(--format csv\)"):
        read_examples(commas, text="text,label", label="label")
    neither = write(tmp_path / "b.tsv", "a, b\t0\n")
    with pytest.raises(ValueError, match=r"no column 4, the row has 2 \(numbered from 0\)\.$"):
        read_examples(neither, text=4)


def test_errors_name_file_and_line(tmp_path):
    path = write(tmp_path / "a.tsv", "s\ty\na\t0\nb\nc\t1\n")
    with pytest.raises(ValueError, match=r"a\.tsv, line 3: the row has 1 columns, the first has 2"):
        read_examples(path, text="s", label="y")
    write(path, "s\ty\na\t0\nb\t1\tmore\n")
    with pytest.raises(ValueError, match=r"line 3: the row has 3 columns.*extra_columns=True"):
        read_examples(path, text="s", label="y")
    assert read_examples(path, text="s", label="y", extra_columns=True).labels == [0, 1]
    with pytest.raises(ValueError, match=r"line 1: no column 'z'. The first row is \['s', 'y'\]"):
        read_examples(path, text="z")
    with pytest.raises(ValueError, match="line 1: no column 5, the row has 2"):
        read_examples(path, text=5)
    write(path, "s\ty\na\t0\nb\t \n")
    with pytest.raises(ValueError, match="line 3: the label is missing"):
        read_examples(path, text="s", label="y")
    assert read_examples(path, text="s", label="y", allow_unlabelled=True).labels == [0, None]
    write(path, "s\ty\na\tpos\nb\tneu\n")
    with pytest.raises(
        ValueError, match=r"line 3: unknown label 'neu'. Known labels: \['neg', 'pos'\]"
    ):
        read_examples(path, text="s", label="y", label_names=["neg", "pos"])
    with pytest.raises(ValueError, match="line 2: .*finite number. Received: 'pos'"):
        read_examples(path, text="s", label="y", regression=True)
    write(path, "s\ty\na\tnan\n")
    with pytest.raises(ValueError, match="line 2: .*finite number. Received: 'nan'"):
        read_examples(path, text="s", label="y", regression=True)
    with pytest.raises(ValueError, match=r"line 1: no column 's'. The file has no header"):
        read_examples(path, text="s", header=False)
    quotes = write(tmp_path / "q.csv", 'x,1\n"open,2\n')
    with pytest.raises(ValueError, match=r"q\.csv, line 2: quotes do not match.*quoting=False"):
        read_examples(quotes)
    with pytest.raises(ValueError, match="holds no example"):
        read_examples(write(tmp_path / "e.tsv", "\n"))
    with pytest.raises(ValueError, match="format='tsv'"):
        read_examples(write(tmp_path / "a.data", "x"))
    with pytest.raises(ValueError, match="format='xml'"):
        read_examples(path, format="xml")


def test_encodings(tmp_path):
    path = write(tmp_path / "a.tsv", "abc\t0\ncafé\t1\n", "latin-1")
    with pytest.raises(ValueError, match=r"a\.tsv is not valid utf-8: the byte at offset 9"):
        read_examples(path, label=1)
    assert read_examples(path, label=1, encoding="latin-1").texts == ["abc", "café"]


def test_long_fields(tmp_path):
    path = write(tmp_path / "a.csv", '"' + "x" * 300_000 + '",1\n')
    assert len(read_examples(path).texts[0]) == 300_000


@pytest.mark.parametrize(
    ("name", "options", "rows", "labels"),
    [
        ("sst2/train.tsv", {"text": 0, "label": 1}, 6920, ["0", "1"]),
        ("sst2/dev.tsv", {"text": 0, "label": 1}, 872, ["0", "1"]),
        ("ag_news/ag_news.csv", {"text": 1, "pair": 2, "label": 0}, 5067, ["1", "2", "3", "4"]),
        (
            "mrpc/msr_paraphrase_train.txt",
            {"text": "#1 String", "pair": "#2 String", "label": "Quality"},
            4076,
            ["0", "1"],
        ),
        (
            "rte/train.tsv",
            {"text": "sentence1", "pair": "sentence2", "label": "label", "quoting": True},
            2490,
            ["0", "1"],
        ),
        ("cola/in_domain_train.tsv", {"text": 3, "label": 1}, 8551, ["0", "1"]),
        ("imdb/train.tsv", {"text": "text", "label": "label"}, 1400, ["0", "1"]),
        ("chnsenticorp/train.tsv", {"text": "text_a", "label": "label"}, 9600, ["0", "1"]),
        ("chnsenticorp/train.tsv", {"text": 1, "label": 0}, 9600, ["0", "1"]),
        (
            "stsb/sts-train.csv",
            {"text": 5, "pair": 6, "label": 4, "format": "tsv", "regression": True}
            | {"extra_columns": True},
            5749,
            None,
        ),
    ],
)
def test_real_sets(kctx_data, name, options, rows, labels):
    examples = read_examples(kctx_data / name, **options)
    assert len(examples) == rows and examples.label_names == labels
    assert all(text.strip() for text in examples.texts)
    if options.get("regression"):
        assert min(examples.labels) == 0.0 and max(examples.labels) == 5.0
    if "pair" in options:
        assert len(examples.pairs) == rows
    if name.startswith("mrpc"):
        assert examples.texts[0].startswith('Amrozi accused his brother, whom he called "the')


def test_latin_set(kctx_data):
    with pytest.raises(ValueError, match="TREC.train is not valid utf-8"):
        read_examples(kctx_data / "trec/TREC.train", format="tsv")


# ---- batches


def preprocess(*texts):
    """Stands in for a preprocessor: the code points of the texts joined."""
    ids = tf.strings.unicode_decode(tf.strings.join(texts), "UTF-8")
    return {"token_ids": ids.to_tensor()}


def examples_of(tmp_path, count=50, regression=False):
    rng = np.random.default_rng(0)
    text = "".join(f"{'x' * int(rng.integers(1, 99))}{i:03d}\t{i % 3}\n" for i in range(count))
    path = write(tmp_path / "a.tsv", text)
    return read_examples(path, text=0, label=1, regression=regression)


def joined(lists):
    return list(itertools.chain.from_iterable(lists))


def numbers(dataset, steps):
    """The number at the end of each text, batch by batch."""
    found = []
    for x, _ in dataset.take(steps).as_numpy_iterator():
        rows = ["".join(map(chr, row[row > 0])) for row in x["token_ids"]]
        found.append([int(row[-3:]) for row in rows])
    return found


def test_stream_takes_each_example_once_an_epoch_in_a_new_order(tmp_path):
    examples = examples_of(tmp_path)
    stream = ExampleStream(examples, preprocess, 8, seed=3)
    assert stream.steps_per_epoch == 7
    batches = numbers(stream.dataset(), 14)
    first, second = batches[:7], batches[7:]
    assert sorted(joined(first)) == sorted(joined(second)) == list(range(50))
    assert first != second
    assert numbers(ExampleStream(examples, preprocess, 8, seed=3).dataset(), 14) == batches
    assert numbers(ExampleStream(examples, preprocess, 8, seed=4).dataset(), 7) != first


@pytest.mark.parametrize("step", [0, 3, 7, 12])
def test_stream_resumes_at_any_batch(tmp_path, step):
    examples = examples_of(tmp_path)
    whole = numbers(ExampleStream(examples, preprocess, 8).dataset(), 16)
    resumed = ExampleStream(examples, preprocess, 8)
    resumed.restore(ExampleStream(examples, preprocess, 8).state_at(step))
    assert numbers(resumed.dataset(), 16 - step) == whole[step:]


def test_stream_fingerprint_tells_other_data(kctx_data, tmp_path):
    from kctx.preprocessors import BERTPreprocessor
    from kctx.tokenizers import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(str(kctx_data / "tokenizers/bert-base-uncased/vocab.txt"))
    examples = examples_of(tmp_path)

    def of(examples=examples, length=16, **options):
        return ExampleStream(examples, BERTPreprocessor(tokenizer, length), **options).fingerprint()

    assert of() == of()
    assert of(length=17) != of() != of(seed=1)
    assert of(batch_size=8) != of() != of(examples.take(range(49)))


def test_labels_follow_their_texts(tmp_path):
    for regression in (False, True):
        stream = ExampleStream(examples_of(tmp_path, regression=regression), preprocess, 8)
        for x, y in stream.dataset().take(7).as_numpy_iterator():
            numbers_ = [int("".join(map(chr, row[row > 0]))[-3:]) for row in x["token_ids"]]
            expected = np.array([n % 3 for n in numbers_])
            assert (y == (expected[:, None] if regression else expected)).all()
            assert y.dtype == (np.float32 if regression else np.int32)


def test_split_and_take(tmp_path):
    examples = examples_of(tmp_path)
    rest, held_out = examples.split(every=10)
    assert (len(rest), len(held_out)) == (45, 5)
    assert held_out.texts == examples.texts[9::10]
    assert sorted(rest.lines + held_out.lines) == examples.lines
    assert held_out.labels == examples.labels[9::10]
    with pytest.raises(ValueError, match=r"`every` must lie in \[2, 9\].*Received: 10"):
        examples.take(range(9)).split(every=10)


def test_window_saves_padding_and_loses_nothing():
    lengths = np.random.default_rng(0).integers(1, 200, 1000)

    def padded(window):
        parts = batch_indices(lengths, 16, 1, window)
        assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
        return sum(lengths[part].max() * len(part) for part in parts)

    assert padded(20) < 1.15 * lengths.sum() and padded(0) > 1.6 * lengths.sum()
    assert [p.tolist() for p in batch_indices([3, 1, 2, 9], 2)] == [[0, 1], [2, 3]]
    assert [p.tolist() for p in batch_indices([3, 1, 2, 9], 2, window=2)] == [[1, 2], [0, 3]]


def test_unlabelled_examples(tmp_path):
    path = write(tmp_path / "a.tsv", "s\ty\na\t0\nb\t\n")
    without = read_examples(path, text="s")
    with pytest.raises(ValueError, match="no labels: give `label=`"):
        ExampleStream(without, preprocess)
    part = read_examples(path, text="s", label="y", allow_unlabelled=True)
    with pytest.raises(ValueError, match="line 3 has no label"):
        ExampleStream(part, preprocess)
    with pytest.raises(
        ValueError, match="`batch_size` must be an integer of at least 1. Received: batch_size=0"
    ):
        ExampleStream(part, preprocess, 0)
    with pytest.raises(ValueError, match="at least one row"):
        ExampleStream(part.take([]), preprocess)


def test_real_preprocessor_and_pairs(kctx_data):
    from kctx.preprocessors import BERTPreprocessor
    from kctx.tokenizers import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(str(kctx_data / "tokenizers/bert-base-uncased/vocab.txt"))
    examples = read_examples(
        kctx_data / "mrpc/msr_paraphrase_train.txt", "#1 String", "#2 String", "Quality"
    )
    preprocessor = BERTPreprocessor(tokenizer, sequence_length=64)
    stream = ExampleStream(examples, preprocessor, 16, window=0)
    x, y = next(iter(stream.dataset()))
    chosen = examples.take(batch_indices(stream.lengths, 16, [0, 0])[0])
    expected = preprocessor(chosen.texts, chosen.pairs)
    assert all((x[name].numpy() == expected[name].numpy()).all() for name in expected)
    assert y.numpy().tolist() == chosen.labels


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_lines_end_as_on_any_system(tmp_path, name, end):
    tab = "\t" if name == "a.tsv" else ","
    path = write(
        tmp_path / name, "".join(f"{text}{tab}{i % 2}{end}" for i, text in enumerate("abc"))
    )
    found = read_examples(path, 0, None, 1)
    assert found.texts == ["a", "b", "c"] and found.labels == [0, 1, 0] and found.lines == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": True}, "`text` must be the name or the number of a column. Received: text=True"),
        ({"text": None}, "`text` must be the name or the number"),
        ({"label": 0.5}, "`label` must be the name or the number of a column. Received: label=0.5"),
        ({"label_names": 5}, "`label_names` must be a list of different names. Received: 5"),
        ({"label_names": [1, 2]}, r"`label_names` must be a list .*names. Received: \[1, 2\]"),
        ({"label": 1, "regression": True}, "must be a finite number. Received: '1_0'"),
    ],
)
def test_arguments_and_numbers_that_are_none(tmp_path, options, message):
    path = write(tmp_path / "a.tsv", "a\t1_0\nb\t2\n")
    with pytest.raises(ValueError, match=message):
        read_examples(path, header=False, **options)
