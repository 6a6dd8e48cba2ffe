"""The words behind the masks in a text."""

import tensorflow as tf

from kctx.arguments import check_count
from kctx.preprocessors import ModelInput
from kctx.tasks.task import Task, as_python


class MaskedLM(Task):
    """Fills each mask token: `tokens` string, `scores` float32 (B, M, K), `mask_count` int32 (B,).

    A mask token that is written in the text is one. M is the greatest number of masks in a text of
    the batch. Logits beyond the vocabulary, of a model whose tables were rounded up, are left out.

    Options:
        top_k: int, K, at most as many as the vocabulary has entries.
    """

    name = "masked_lm"
    fields = {"text": Task.fields["text"]}
    defaults = {"top_k": 5}
    meanings = {
        "tokens": ("(B, M, K)", "most probable vocabulary entries for each mask, best first"),
        "scores": ("(B, M, K)", "their probabilities"),
        "mask_count": ("(B,)", "masks in this text; tokens and scores beyond are '' and 0"),
    }
    output_axes = ("B", "M")

    def __init__(self, model, preprocessor, labels=None, **options):
        super().__init__(model, preprocessor, labels, **options)
        tokenizer = preprocessor.tokenizer.with_options(special_tokens_in_text=True)
        self.preprocessor = preprocessor.with_options(tokenizer=tokenizer)
        size = min(model.output["masked_lm"].shape[-1], tokenizer.vocabulary_size)
        check_count("top_k", self.top_k)
        if self.top_k > size:
            raise ValueError(
                f"`top_k` must lie between 1 and the vocabulary's {size} entries. "
                f"Received: {self.top_k}"
            )

    @classmethod
    def tells(cls, model):
        """Whether there is an output `masked_lm`."""
        outputs = getattr(model, "output", None)
        return isinstance(outputs, dict) and "masked_lm" in outputs

    @classmethod
    def check_labels(cls, model, labels):
        if not cls.tells(model):
            raise ValueError(
                "`model` must be a `MaskedLM` objective, or a `Joint` with one. "
                f"Received: {model.name}"
            )
        super().check_labels(model, labels)

    @property
    def inputs(self):
        places = ModelInput("int32", 0, "places of masks", axes=("B", "M"))
        return {**super().inputs, "mask_positions": places}

    @property
    def id_inputs(self):
        return super().inputs

    def signatures(self):
        return {"serving_default": ("text",)}

    def complete(self, inputs):
        found = self._found(inputs)
        positions = tf.broadcast_to(tf.range(tf.shape(found)[1])[None, :], tf.shape(found))
        ragged = tf.ragged.boolean_mask(positions, found)
        return {**inputs, "mask_positions": ragged.to_tensor()}  # (B, M)

    def select(self, outputs, inputs):
        size = self.preprocessor.tokenizer.vocabulary_size
        logits = tf.cast(outputs["masked_lm"], tf.float32)[:, :, :size]  # (B, M, V)
        scores, best = tf.math.top_k(tf.nn.softmax(logits, axis=-1), self.top_k)  # (B, M, K)
        return {"ids": best, "scores": scores}

    def answer(self, outputs, inputs, state):
        count = tf.reduce_sum(tf.cast(self._found(inputs), tf.int32), axis=-1)  # (B,)
        real = tf.sequence_mask(count, tf.shape(outputs["scores"])[1])[:, :, None]  # (B, M, 1)
        vocabulary = tf.constant(self.preprocessor.tokenizer.vocabulary)
        return {
            "tokens": tf.where(real, tf.gather(vocabulary, outputs["ids"]), ""),
            "scores": tf.where(real, outputs["scores"], 0.0),
            "mask_count": count,
        }

    def rows(self, answer):
        """`tokens` and `scores` lists of one list of K for each mask."""
        columns = {key: as_python(value) for key, value in answer.items()}
        return [
            {"tokens": tokens[:count], "scores": scores[:count], "mask_count": count}
            for tokens, scores, count in zip(*columns.values(), strict=True)
        ]

    def _found(self, inputs):
        mask_id = self.preprocessor.tokenizer.mask_id
        return (inputs["token_ids"] == mask_id) & inputs["padding_mask"]  # (B, T)
