import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from kctx.data import Corpus, records_stream, write_records
from tests.data.stand_in_tokenizer import StandInTokenizer, write_corpus

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    return Corpus(str(write_corpus(path, 100)), split_sentences=False)


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records") / "deep" / "er"
    count = write_records(
        corpus, StandInTokenizer(), folder, sequence_length=32, sequences_per_shard=50,
        passes=2, progress=False,
    )  # fmt: skip
    content = json.loads((folder / "records.json").read_text())
    assert sum(shard["sequences"] for shard in content["shards"]) == count > 150
    assert all(shard["sequences"] == 50 for shard in content["shards"][:-1])
    assert not list(folder.glob("*.writing"))
    return folder


def take(stream, count=None):
    return list(itertools.islice(stream.batches(), count))


def same(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True)
    )


def unmasked_rows(batches):
    rows = []
    for x, y, weight in batches:
        ids = x["token_ids"].copy()
        r, c = np.nonzero(weight["masked_lm"])
        ids[r, x["mask_positions"][r, c]] = y["masked_lm"][r, c]
        rows += [
            (*row, *segment, label)
            for row, segment, label in zip(
                ids.tolist(), x["segment_ids"].tolist(), y["next_sentence"].tolist(), strict=True
            )
        ]
    return rows


def test_records_hold_the_sequences_of_the_corpus(corpus, folder):
    from kctx.data import bert_pretraining_stream

    direct = bert_pretraining_stream(
        corpus, StandInTokenizer(), sequence_length=32, batch_size=1, epochs=2
    )
    read = records_stream(folder, StandInTokenizer(), batch_size=1, epochs=1)
    assert sorted(unmasked_rows(take(direct))) == sorted(unmasked_rows(take(read)))


def test_masks_and_order_differ_by_epoch_and_static_masks_do_not(folder):
    def epochs(**options):
        stream = records_stream(folder, StandInTokenizer(), batch_size=1, epochs=2, **options)
        rows = [tuple(batch[0]["token_ids"][0].tolist()) for batch in take(stream)]
        return rows[: len(rows) // 2], rows[len(rows) // 2 :]

    first, second = epochs()
    assert len(set(first) & set(second)) < len(first) / 4
    first, second = epochs(static_masking=True)
    assert first != second and sorted(first) == sorted(second)


def test_resume(folder):
    stream = records_stream(folder, StandInTokenizer(), batch_size=8, epochs=3, seed=5)
    whole = take(stream)
    for kill in range(0, len(whole), 7):
        resumed = records_stream(folder, StandInTokenizer(), batch_size=8, epochs=3, seed=5)
        resumed.restore(stream.state_at(kill))
        rest = take(resumed, 3)
        assert all(same(a, b) for a, b in zip(rest, whole[kill:], strict=False)) and rest


def test_errors(corpus, folder, tmp_path):
    with pytest.raises(FileExistsError, match="holds records already"):
        write_records(corpus, StandInTokenizer(), folder, progress=False)
    with pytest.raises(FileNotFoundError, match="holds no records.json"):
        records_stream(tmp_path, StandInTokenizer())
    with pytest.raises(ValueError, match="another vocabulary"):
        records_stream(folder, StandInTokenizer(499))
    expected = {"sequence_length": 32, "passes": 2, **corpus.fingerprint()}
    assert take(records_stream(folder, StandInTokenizer(), expected=expected, batch_size=1), 1)
    for name, value in (("sequence_length", 64), ("corpus_documents", 7)):
        with pytest.raises(
            ValueError, match=f"were written with {name}=.*Received: {name}={value}"
        ):
            records_stream(folder, StandInTokenizer(), expected={**expected, name: value})
    with pytest.raises(ValueError, match="passes=0"):
        write_records(corpus, StandInTokenizer(), tmp_path / "x", passes=0)
    content = json.loads((folder / "records.json").read_text())
    for shard in content["shards"]:
        (tmp_path / shard["name"]).write_bytes((folder / shard["name"]).read_bytes())
    (tmp_path / "records.json").write_text(json.dumps(content))
    assert take(records_stream(tmp_path, StandInTokenizer(), batch_size=1), 1)
    cut = tmp_path / content["shards"][1]["name"]
    cut.write_bytes(cut.read_bytes()[:-10])
    with pytest.raises(ValueError, match="were written"):
        records_stream(tmp_path, StandInTokenizer())
    cut.unlink()
    with pytest.raises(FileNotFoundError, match="is missing"):
        records_stream(tmp_path, StandInTokenizer())
    (tmp_path / "records.json").write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        records_stream(tmp_path, StandInTokenizer())


def test_an_interrupted_write_leaves_no_description(corpus, tmp_path):
    class Failing(StandInTokenizer):
        def __call__(self, texts):
            if self.calls:
                raise RuntimeError("out of ink")
            return super().__call__(texts)

    with pytest.raises(RuntimeError, match="out of ink"):
        write_records(corpus, Failing(), tmp_path, progress=False)
    with pytest.raises(FileNotFoundError, match="interrupted"):
        records_stream(tmp_path, StandInTokenizer())


def test_a_damaged_record_is_noticed(folder, tmp_path):
    content = json.loads((folder / "records.json").read_text())
    for shard in content["shards"]:
        data = bytearray((folder / shard["name"]).read_bytes())
        data[len(data) // 2] ^= 0xFF
        (tmp_path / shard["name"]).write_bytes(bytes(data))
    (tmp_path / "records.json").write_text(json.dumps(content))
    with pytest.raises(tf.errors.DataLossError):
        take(records_stream(tmp_path, StandInTokenizer()), 1)
