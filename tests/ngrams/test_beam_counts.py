import gzip

import numpy as np
import pytest

from kctx.ngrams import NGramLM, beam_counts, count_ngrams
from tests.ngrams.texts import CATS, random_lines

pytestmark = pytest.mark.once

TEXT = [*random_lines(0, 120, words=20), *CATS, "caf\udce9 größe \x0b <unk>", ""]


def needs_beam():
    return pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")


def test_ngrams_of_a_line():
    found = beam_counts.padded_ngrams("a b", 3)
    assert found == [(b"<s>", b"<s>", b"a"), (b"<s>", b"a", b"b"), (b"a", b"b", b"</s>")]
    assert beam_counts.padded_ngrams("", 2) == [(b"<s>", b"</s>")]
    assert beam_counts.padded_ngrams(" ", 2, empty_lines=False) == []
    clipped = beam_counts.padded_ngrams("a b", 1, known={b"b"})
    assert clipped == [(b"<unk>",), (b"b",), (b"</s>",)]
    assert beam_counts.padded_ngrams("<s> a", 1, special_words="skip") == [(b"a",), (b"</s>",)]
    with pytest.raises(ValueError, match="A line holds a special word"):
        beam_counts.padded_ngrams("a <s>", 2)


@pytest.mark.parametrize("options", [{}, {"vocabulary": ["w0", "the", "w3"]}])
def test_counts_of_the_pipeline_equal_those_of_one_machine(tmp_path, options):
    needs_beam()
    data = "".join(f"{line}\n" for line in TEXT).encode("utf-8", "surrogateescape")
    (tmp_path / "one.txt").write_bytes(data[: data.index(b"\n", 500) + 1])
    (tmp_path / "two.txt").write_bytes(data[data.index(b"\n", 500) + 1 :])
    beam_counts.count_files(
        str(tmp_path / "*.txt"),
        str(tmp_path / "counts"),
        order=3,
        special_words="unknown",
        **options,
    )
    parts = sorted(tmp_path.glob("counts-*"))
    found = beam_counts.read_counts(parts, 3, **options)
    expected = count_ngrams(lines=TEXT, order=3, special_words="unknown", progress=False, **options)
    for k in (1, 2, 3):
        assert dict(found.items(k)) == dict(expected.items(k))
    models = [NGramLM.from_counts(counts, "mle") for counts in (found, expected)]
    np.testing.assert_allclose(*(model.score(TEXT) for model in models), atol=1e-6)


def test_the_transform_in_a_pipeline_of_ones_own():
    beam = needs_beam()
    from apache_beam.testing.util import assert_that, equal_to

    expected = {(b"<s>", b"a"): 2, (b"a", b"</s>"): 1, (b"a", b"b"): 1, (b"b", b"</s>"): 1}
    with beam.Pipeline() as pipeline:
        counts = beam_counts.ngram_counts(pipeline | beam.Create(["a", "a b"]), 2)
        assert_that(counts, equal_to(list(expected.items())))


def test_broken_parts_are_refused(tmp_path):
    (tmp_path / "part").write_bytes(b"a b\t2\na b c\t1\n")
    with pytest.raises(ValueError, match="part line 2 must hold 2 words, a tab and a count"):
        beam_counts.read_counts([tmp_path / "part"], 2)
    (tmp_path / "part.gz").write_bytes(gzip.compress(b"a b\t2\n" * 9)[:-9])
    with pytest.raises(ValueError, match="part.gz is a broken gzip file"):
        beam_counts.read_counts([tmp_path / "part.gz"], 2)
    (tmp_path / "part").write_bytes(b"a b\t-2\n")
    with pytest.raises(ValueError, match="part line 1 must hold 2 words"):
        beam_counts.read_counts([tmp_path / "part"], 2)
