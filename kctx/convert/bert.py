"""BERT among the families of published checkpoints."""

from kctx.convert.bert_config import bert_arguments
from kctx.convert.bert_names import (
    CLASSIFIER_ROWS,
    MASKED_LM_ROWS,
    NEXT_SENTENCE_ROWS,
    SPAN_ROWS,
    TIED,
    encoder_rows,
    standard_names,
)
from kctx.convert.family import Family
from kctx.convert.wordpiece_settings import load_tokenizer
from kctx.models import BERT
from kctx.preprocessors import BERTPreprocessor

FAMILY = Family(
    model=BERT,
    arguments=bert_arguments,
    encoder_rows=encoder_rows,
    masked_lm_rows=MASKED_LM_ROWS,
    next_sentence_rows=NEXT_SENTENCE_ROWS,
    classifier_rows=CLASSIFIER_ROWS,
    span_rows=SPAN_ROWS,
    standard_names=standard_names,
    tied=TIED,
    load_tokenizer=load_tokenizer,
    preprocessor=BERTPreprocessor,
)
