"""Which of several choices goes with a context."""

import tensorflow as tf

from kctx.data import choice_inputs
from kctx.preprocessors import ModelInput
from kctx.tasks.field import Field
from kctx.tasks.task import Task, as_python, check_texts, count_filled
from kctx.tokenizers.text_input import as_text_tensor


class MultipleChoice(Task):
    """Contexts, and N choices each, to the most probable choice."""

    name = "multiple_choice"
    output_axes = ("B", "N")
    fields = {
        "context": Field("contexts", "contexts, with the question if there is one, UTF-8"),
        "choices": Field("choices", 'choices, UTF-8, "" where there are fewer', axes=("B", "N")),
    }
    meanings = {
        "index": ("(B,)", "number of the most probable choice, from 0"),
        "choice": ("(B,)", "the choice itself"),
        "scores": ("(B, N)", "probability of each choice, 0 where there is none"),
    }

    id_meanings = {"index": meanings["index"], "scores": meanings["scores"]}

    @property
    def inputs(self):
        declared = {
            name: made._replace(axes=("B", "N", *made.axes[1:]))
            for name, made in self.preprocessor.inputs.items()
        }
        mask = ModelInput("bool", False, "true = a choice", axes=("B", "N"))
        return {**declared, "choice_mask": mask}

    def signatures(self):
        return {"serving_default": ("context", "choices")}

    def check(self, columns, first=0):
        contexts, choices = columns
        check_texts(contexts, "contexts", first)
        for index, row in enumerate(choices, first):
            if not isinstance(row, (list, tuple)) or not row:
                raise TypeError(
                    f"`choices[{index}]` must be a list of one text or more. Received: {row!r}"
                )
            check_texts(row, f"choices[{index}]")
            if not all(row):
                raise ValueError(f'`choices[{index}]` must not hold "". Received: {row!r}')
        return "serving_default"

    def tensors(self, columns):
        contexts, choices = columns
        most = max(map(len, choices), default=1)
        flat = [text for row in choices for text in (*row, *[""] * (most - len(row)))]
        contexts, flat = (as_text_tensor(x, self.keeps_bytes) for x in (contexts, flat))
        return [contexts, tf.reshape(flat, [-1, most])]

    def prepare(self, signature, context, choices):
        none = tf.maximum(1 - tf.shape(choices)[1], 0)
        choices = tf.pad(choices, [[0, 0], [0, none]], constant_values="")
        count = count_filled(choices, "choices")  # (B,)
        return choice_inputs(self.preprocessor, context, choices, count), {"choices": choices}

    def answer(self, outputs, inputs, state):
        logits = tf.convert_to_tensor(outputs["output"])  # (B, N)
        mask = tf.convert_to_tensor(inputs["choice_mask"])
        scores = tf.nn.softmax(tf.where(mask, logits, -1e9), axis=-1)
        scores = tf.where(mask, scores, 0.0)
        index = tf.argmax(scores, axis=-1, output_type=tf.int32)  # (B,)
        answer = {"index": index, "scores": scores}
        if "choices" in state:
            answer["choice"] = tf.gather(state["choices"], index, axis=1, batch_dims=1)
        return {key: answer[key] for key in self.meanings if key in answer}

    def answer_eagerly(self, outputs, inputs, state):
        return {**self.answer(outputs, inputs, state), "mask": inputs["choice_mask"]}

    def rows(self, answer):
        """`index`, `choice` and `scores`, one for each choice that there is."""
        columns = [as_python(value) for value in answer.values()]
        return [
            {"index": index, "choice": choice, "scores": scores[: sum(mask)]}
            for index, choice, scores, mask in zip(*columns, strict=True)
        ]
