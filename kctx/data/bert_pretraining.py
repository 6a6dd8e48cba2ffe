"""BERT's pretraining data from text files or records, in one call."""

from kctx.data.corpus import Corpus
from kctx.data.corpus_blocks import CorpusBlocks
from kctx.data.stream import PretrainingStream


def bert_pretraining_stream(
    corpus,
    tokenizer,
    sequence_length=128,
    max_predictions=20,
    batch_size=32,
    masked_lm_probability=0.15,
    short_sequence_probability=0.1,
    whole_word=False,
    next_sentence=True,
    static_masking=False,
    dupe_factor=10,
    replace_with_special=True,
    seed=0,
    epochs=None,
    vocabulary_size=None,
    block_bytes=4 << 20,
    workers=2,
    history=512,
):
    """Masked-LM and next-sentence batches from a corpus (BERT, section 3.1, appendix A).

    Args:
        corpus: `Corpus`, or file names and globs for one.
        tokenizer: WordPiece tokenizer.
        sequence_length: T, with [CLS] and [SEP]. Default 128.
        max_predictions: M, most predictions in a sequence; about 0.15 T. Default 20.
        batch_size: B; a last part batch is dropped.
        masked_lm_probability: share of the pieces to predict.
        short_sequence_probability: share of documents cut to a shorter random length.
        whole_word: mask all pieces of a word or none.
        next_sentence: `False` gives single segments of whole sentences and no such label.
        static_masking: `False` (default) pairs and masks anew in each epoch. `True` makes
            `dupe_factor` versions of the corpus and repeats them, masks and all.
        dupe_factor: see `static_masking`; without effect otherwise.
        replace_with_special: a random replacement may be any vocabulary entry, as in the
            original; `False` leaves special tokens out.
        seed: fixes every batch.
        epochs: `None` (default) is endless.
        vocabulary_size: of the model to train, checked against the tokenizer.
        block_bytes: text shuffled together, in bytes.
        workers: threads that read and tokenise; the result does not depend on it.
        history: batches back that `state_at` can be asked for.

    Returns:
        `PretrainingStream`; its `dataset()` is what `fit` takes.
    """
    if static_masking and dupe_factor < 1:
        raise ValueError(f"`dupe_factor` must be at least 1. Received: dupe_factor={dupe_factor}")
    blocks = CorpusBlocks(
        corpus if isinstance(corpus, Corpus) else Corpus(corpus),
        tokenizer,
        sequence_length=sequence_length,
        short_sequence_probability=short_sequence_probability,
        next_sentence=next_sentence,
        duplicates=dupe_factor if static_masking else None,
        seed=seed,
        block_bytes=block_bytes,
    )
    return PretrainingStream(
        blocks,
        tokenizer,
        max_predictions=max_predictions,
        batch_size=batch_size,
        masked_lm_probability=masked_lm_probability,
        whole_word=whole_word,
        static_masking=static_masking,
        replace_with_special=replace_with_special,
        seed=seed,
        epochs=epochs,
        vocabulary_size=vocabulary_size,
        workers=workers,
        history=history,
    )


def bert_pretraining_dataset(corpus, tokenizer, **options):
    """The `tf.data.Dataset` of `bert_pretraining_stream`, for use without resuming."""
    return bert_pretraining_stream(corpus, tokenizer, **options).dataset()
