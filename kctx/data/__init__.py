"""Datasets: streaming pretraining data and labelled examples for fine-tuning."""

from kctx.data.alignment import pieces_of_spans, spans_of_pieces
from kctx.data.bert_pretraining import bert_pretraining_dataset, bert_pretraining_stream
from kctx.data.choice_stream import ChoiceStream, choice_inputs
from kctx.data.choices import ChoiceExamples, read_choices
from kctx.data.conll import TaggedSentences, read_conll
from kctx.data.cooccurrence import count_cooccurrences
from kctx.data.cooccurrence_records import open_cooccurrences, shuffle_cooccurrences
from kctx.data.cooccurrence_stream import CooccurrenceStream
from kctx.data.corpus import Corpus, matching_files
from kctx.data.example_order import batch_indices
from kctx.data.example_stream import ExampleStream, SimilarityStream
from kctx.data.examples import Examples, read_examples
from kctx.data.id_corpus import IdCorpus
from kctx.data.labelled_lines import LabelledLines, count_labelled_lines, read_labelled_lines
from kctx.data.labelled_stream import LabelledStream
from kctx.data.masking import mask_batch, mask_tokens, number_to_predict
from kctx.data.pairs import build_pairs, plan_pairs
from kctx.data.phrases import Phrases, join_phrases
from kctx.data.predicates import read_predicates
from kctx.data.records import has_records, records_stream, write_records
from kctx.data.sentences import split_sentences
from kctx.data.span_stream import SpanStream
from kctx.data.squad import Answer, SpanExamples, read_squad
from kctx.data.stream import PretrainingStream
from kctx.data.tagging_stream import TaggingStream
from kctx.data.text_blocks import ALL_WHITE_SPACE
from kctx.data.window_stream import WindowStream
from kctx.data.window_targets import HierarchicalSoftmax, NegativeSampling
from kctx.data.word_features import WordFeatures
from kctx.data.word_stream import WordStream, word_stream
from kctx.data.word_vocabulary import WordVocabulary
from kctx.data.word_windows import WordWindows
from kctx.tag_schemes import convert_tags, tag_spans, tags_of_spans

__all__ = [
    "ALL_WHITE_SPACE",
    "Answer",
    "ChoiceExamples",
    "ChoiceStream",
    "CooccurrenceStream",
    "Corpus",
    "ExampleStream",
    "Examples",
    "HierarchicalSoftmax",
    "IdCorpus",
    "LabelledLines",
    "LabelledStream",
    "NegativeSampling",
    "Phrases",
    "PretrainingStream",
    "SimilarityStream",
    "SpanExamples",
    "SpanStream",
    "TaggedSentences",
    "TaggingStream",
    "WindowStream",
    "WordFeatures",
    "WordStream",
    "WordVocabulary",
    "WordWindows",
    "batch_indices",
    "bert_pretraining_dataset",
    "bert_pretraining_stream",
    "build_pairs",
    "choice_inputs",
    "convert_tags",
    "count_cooccurrences",
    "count_labelled_lines",
    "has_records",
    "join_phrases",
    "mask_batch",
    "mask_tokens",
    "matching_files",
    "number_to_predict",
    "open_cooccurrences",
    "pieces_of_spans",
    "plan_pairs",
    "read_choices",
    "read_conll",
    "read_examples",
    "read_labelled_lines",
    "read_predicates",
    "read_squad",
    "records_stream",
    "shuffle_cooccurrences",
    "spans_of_pieces",
    "split_sentences",
    "tag_spans",
    "tags_of_spans",
    "word_stream",
    "write_records",
]
