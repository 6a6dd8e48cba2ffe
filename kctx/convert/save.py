"""Our models as folders that Hugging Face's libraries load."""

import keras
import numpy as np

from kctx.convert.assign import Part, resolve
from kctx.convert.bert_config import published_config
from kctx.convert.bert_names import (
    CLASSIFIER_ROWS,
    MASKED_LM_ROWS,
    NEXT_SENTENCE_ROWS,
    SPAN_ROWS,
    encoder_rows,
)
from kctx.convert.published_tokenizer import published_tokenizer
from kctx.convert.safetensors_file import write_safetensors
from kctx.data.tokenizer_checks import check_vocabulary_size
from kctx.files import replaced_folder, write_json
from kctx.heads import ChoiceScorer, Classifier, Regressor, Span, Tagger, encoder_of, head_of
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from kctx.presets import TextModel
from kctx.tokenizers.vocabulary import write_vocabulary

# Head -> name of the architecture there, and the rows of names of the head.
HEADS = {
    Classifier: ("BertForSequenceClassification", CLASSIFIER_ROWS),
    Regressor: ("BertForSequenceClassification", CLASSIFIER_ROWS),
    Tagger: ("BertForTokenClassification", CLASSIFIER_ROWS),
    Span: ("BertForQuestionAnswering", SPAN_ROWS),
    ChoiceScorer: ("BertForMultipleChoice", CLASSIFIER_ROWS),
}
FILES = ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json", "tokenizer.json")


def save_huggingface(model, folder, tokenizer=None, labels=None, weights_dtype="float32"):
    """Writes a model as a Hugging Face folder; the previous one stays until the new one is whole.

    | ours | theirs |
    |---|---|
    | `BERT` | `BertModel` |
    | `Joint([MaskedLM, NextSentence])` | `BertForPreTraining` |
    | `MaskedLM` | `BertForMaskedLM` |
    | `NextSentence` | `BertForNextSentencePrediction` |
    | `attach(BERT, Classifier)`, or `Regressor`, pooled | `BertForSequenceClassification` |
    | `attach(BERT, Tagger)` | `BertForTokenClassification` |
    | `attach(BERT, Span)` | `BertForQuestionAnswering` |
    | `attach_choices(BERT, ChoiceScorer)`, pooled | `BertForMultipleChoice` |

    Those for tokens and questions are written without the pooler, which they do not have there; the
    rules of a `Tagger` on which tag may follow which are left out.

    Args:
        model: one of these, or a `kctx.presets.TextModel` that holds one.
        folder: str or `pathlib.Path`. A folder that holds other files is refused.
        tokenizer: `WordPieceTokenizer`. Default: that of the `TextModel`, else none is written.
        labels: list of str, names of the classes or tags. Default: those of the `TextModel`, else
            LABEL_0, LABEL_1, ... as is usual there.
        weights_dtype: "float32" or "float16", whatever the dtype policy of the model. Default
            "float32". One tensor at a time is copied.

    Raises:
        ValueError: the model has no equal there; labels or vocabulary do not fit it.
        FileExistsError: `folder` holds other files.
    """
    if isinstance(model, TextModel):
        if tokenizer is None and model.preprocessor is not None:
            tokenizer = model.preprocessor.tokenizer
        labels = model.labels if labels is None else labels
        model = model.model
    if weights_dtype not in ("float32", "float16"):
        raise ValueError(
            f'`weights_dtype` must be "float32" or "float16". Received: {weights_dtype!r}'
        )
    architecture, encoder, parts = _parts(model)
    config = {"architectures": [architecture], **published_config(encoder)}
    config["dtype"] = weights_dtype
    config.update(_label_fields(head_of(model), labels))
    if tokenizer is not None:
        check_vocabulary_size(tokenizer, encoder.vocabulary_size)
        config["pad_token_id"] = tokenizer.padding_id
    tensors = {}
    for part in parts:
        for row in part.rows:
            name = row.huggingface
            if architecture == "BertModel":
                name = name.removeprefix("bert.")
            tensors[name] = _tensor(resolve(part.root, row.target), row.huggingface_transposed)
    with replaced_folder(folder, FILES) as new:
        write_json(new / "config.json", config)
        write_safetensors(new / "model.safetensors", tensors, weights_dtype)
        if tokenizer is not None:
            fast, slow = published_tokenizer(tokenizer, encoder.max_sequence_length)
            write_json(new / "tokenizer.json", fast)
            write_json(new / "tokenizer_config.json", slow)
            write_vocabulary(tokenizer.vocabulary, new / "vocab.txt")


def _parts(model):
    """Name of the architecture there, the encoder, and the parts whose variables are written."""
    pooler = True
    if isinstance(model, BERT):
        encoder = model
        architecture, parts = "BertModel", []
    elif isinstance(model, (Joint, MaskedLM, NextSentence)):
        encoder = model.encoder
        objectives = model.objectives if isinstance(model, Joint) else [model]
        rows = {MaskedLM: MASKED_LM_ROWS, NextSentence: NEXT_SENTENCE_ROWS}
        kinds = [type(objective) for objective in objectives]
        architecture = {
            frozenset({MaskedLM, NextSentence}): "BertForPreTraining",
            frozenset({MaskedLM}): "BertForMaskedLM",
            frozenset({NextSentence}): "BertForNextSentencePrediction",
        }.get(frozenset(kinds))
        parts = [Part(root.name, root, rows.get(type(root), [])) for root in objectives]
    else:
        encoder = encoder_of(model)
        head = head_of(model)
        architecture, rows = HEADS.get(type(head), (None, []))
        pooler = hasattr(head, "pooling")
        if pooler and head.pooling != "pooled":
            architecture = None
        parts = [Part(head.name, head, rows)] if architecture else []
    if architecture is None or not isinstance(encoder, BERT):
        raise ValueError(
            "`model` must be a BERT, an objective of masked LM and next sentence on one, or one "
            "with a Tagger, a Span, or a Classifier, Regressor or ChoiceScorer on its pooled "
            "output, to have an equal in Hugging Face's format. "
            f"Received: {model.name} ({type(model).__name__})"
        )
    rows = encoder_rows(encoder.num_layers, pooler and encoder.pooler is not None)
    return architecture, encoder, [Part("encoder", encoder, rows), *parts]


def _label_fields(head, labels):
    """Fields of the configuration on the head."""
    fields = {} if head is None or isinstance(head, Span) else {"classifier_dropout": head.dropout}
    num_labels = getattr(head, "num_tags", getattr(head, "num_classes", None))
    if num_labels is None or isinstance(head, ChoiceScorer):
        if labels is not None:
            raise ValueError(
                f"`labels` need a model with a Classifier or a Tagger. Received: {labels}"
            )
        return fields
    if labels is None:
        labels = [f"LABEL_{index}" for index in range(num_labels)]
    if isinstance(labels, str) or len(labels) != num_labels:
        raise ValueError(f"`labels` must be one for each class: {num_labels}. Received: {labels!r}")
    if len({str(label) for label in labels}) < len(labels):
        raise ValueError(f"`labels` must be different names. Received: {labels!r}")
    if isinstance(head, Classifier):
        regression = isinstance(head, Regressor)
        fields["problem_type"] = "regression" if regression else "single_label_classification"
    return {
        **fields,
        "id2label": {str(index): str(label) for index, label in enumerate(labels)},
        "label2id": {str(label): index for index, label in enumerate(labels)},
    }


def _tensor(variable, transposed):
    """Shape there, and a function that gives the values."""
    shape = tuple(variable.shape)

    def read():
        values = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
        return np.asarray(values.T if transposed else values)

    return (shape[::-1] if transposed else shape), read
