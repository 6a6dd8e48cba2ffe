"""What all tasks share."""

import keras
import numpy as np
import tensorflow as tf

from kctx.tasks.field import Field
from kctx.tokenizers.text_input import as_text_tensor


class Task:
    """From raw requests to a model's inputs, and from its outputs to answers in the task's words.

    What is done to tensors is done by TensorFlow operations, so that what a preset answers and what
    an exported graph answers come from the same lines. The model runs in between, under whichever
    backend.

    A new task is one file with a subclass, and an entry in `kctx.tasks.TASKS`.

    Args:
        model: keras.Model.
        preprocessor: of `kctx.preprocessors`.
        labels: list of str, where the task has some, as of `check_labels`.
        **options: of the task, see `defaults`.

    Attributes:
        name: str, its name in task.json and everywhere.
        fields: dict of name to `Field`, the parts of a request in their order, required ones first.
        defaults: dict of name to default value, the options. An option `pairs`, if true, makes
            `text_pair` a part that no request may lack.
        meanings: dict of name to (shape, meaning), what a served answer holds.
        has_labels: bool, whether the outputs have names.
        id_meanings: dict as `meanings`, of what is answered to ids without their texts. None: the
            same.
        keeps_bytes: bool, whether lone surrogates that stand for bytes become these bytes. False
            where offsets count on each being a code point.
        output_axes: tuple of str, the first axes of what `select` gives, letters as in `inputs`.
        batches_at_once: int, so many batches are tokenized and sorted by length together.
        long_texts: str, what becomes of them, with {} for the tokens that the model takes.
    """

    name = None
    fields = {
        "text": Field("texts", "raw texts, UTF-8, any length"),
        "text_pair": Field("pairs", "second texts, for models taught on pairs", required=False),
    }
    defaults = {}
    meanings = {}
    id_meanings = None
    has_labels = False
    keeps_bytes = True
    output_axes = ("B",)
    batches_at_once = 32
    long_texts = "Texts longer than {} tokens are cut."

    def __init__(self, model, preprocessor, labels=None, **options):
        unknown = sorted(set(options) - set(self.defaults))
        if unknown:
            known = ", ".join(self.defaults) or "none"
            raise ValueError(f"Options of {self.name} are: {known}. Received: {', '.join(unknown)}")
        self.model = model
        self.preprocessor = preprocessor
        self.labels = labels
        for key, value in {**self.defaults, **options}.items():
            setattr(self, key, value)
        if getattr(self, "pairs", False):
            if not preprocessor.takes_pairs:
                raise ValueError(
                    f"pairs=True needs a preprocessor of two texts. Received: "
                    f"{type(preprocessor).__name__}, which takes single texts"
                )
            second = self.fields["text_pair"]
            self.fields = {**self.fields, "text_pair": Field(second.argument, second.meaning)}

    @classmethod
    def tells(cls, model):
        """Whether the head of a model, or the names of its outputs, tell that this is its task."""
        return any(getattr(layer, "task", None) == cls.name for layer in model.layers)

    @classmethod
    def check_labels(cls, model, labels):
        """The labels, completed.

        Raises:
            ValueError: the model does not do this task, or they do not fit its outputs.
        """
        if labels is not None:
            raise ValueError(
                f"`labels` belong to classification and tagging only. Received: {labels}"
            )
        if not cls.tells(model):
            raise ValueError(f"`model` must have a head for {cls.name}. Received: {model.name}")

    @property
    def inputs(self):
        """What the model takes: dict of name to `kctx.preprocessors.ModelInput`."""
        return self.preprocessor.inputs

    @property
    def id_inputs(self):
        """What a client with ids sends, which `complete` adds to: a dict as `inputs`."""
        return self.inputs

    def signatures(self):
        """Ways to ask: dict of name to the tuple of fields that it takes."""
        required = tuple(name for name, field in self.fields.items() if field.required)
        found = {"serving_default": required}
        if "text_pair" in self.fields and self.preprocessor.takes_pairs:
            found["pair"] = tuple(self.fields)
        return found

    @property
    def arguments(self):
        """What `TextModel.predict` is given: dict of name to whether it is required, in order."""
        return {field.argument: field.required for field in self.fields.values()}

    def check(self, columns, first=0):
        """Which signature answers requests.

        Args:
            columns: list of lists, one for each argument that was given, equal in number.
            first: int, number of the first request in what the caller sent.

        Returns:
            str, a key of `signatures()`

        Raises:
            TypeError: something is not what it must be; its place is told.
            ValueError: an argument that the preprocessor cannot take.
        """
        for column, argument in zip(columns, self.arguments, strict=False):
            check_texts(column, argument, first)
        if len(columns) == len(self.signatures()["serving_default"]):
            return "serving_default"
        if not self.preprocessor.takes_pairs:
            raise ValueError(
                f"`pairs` must be None: {type(self.preprocessor).__name__} takes single texts. "
                f"Received: {len(columns[1])} pairs"
            )
        return "pair"

    def parts(self, request, number):
        """The parts of one request of a stream: list, one for each argument that was given.

        Args:
            request: dict by the names of fields, tuple, or what the first field takes.
            number: int, its place in the stream.

        Raises:
            ValueError: a part is missing, or unknown.
        """
        if isinstance(request, tuple):
            found = dict(zip(self.arguments, request, strict=False))
            unknown = request[len(self.arguments) :]
        elif isinstance(request, dict):
            given = [key for key in self.fields if request.get(key) is not None]
            named = {self.fields[key].argument: request[key] for key in given}
            found = {key: named[key] for key in self.arguments if key in named}
            unknown = [key for key in request if key not in self.fields]
            if isinstance(request.get("words"), (str, bytes)):
                raise TypeError(
                    f"Request {number} must have a list of words. Received: {request!r}"
                )
            if len(named) < len(given):
                raise ValueError(
                    f"Request {number} must have one of `text` and `words`. Received: {request!r}"
                )
        else:
            found, unknown = {next(iter(self.arguments)): request}, ()
        missing = [key for key, needed in self.arguments.items() if needed and key not in found]
        if missing or unknown:
            raise ValueError(
                f"Request {number} must have the parts {', '.join(self.fields)} that {self.name} "
                f"takes. Received: {request!r}"
            )
        return list(found.values())

    def tensors(self, columns):
        """Checked columns as `prepare` takes them."""
        return [as_text_tensor(column, self.keeps_bytes) for column in columns]

    def prepare(self, signature, *columns):
        """Requests to rows of the model's inputs.

        Args:
            signature: str, a key of `signatures()`.
            *columns: tensors, one for each of its fields.

        Returns:
            (inputs, state): dict of tensors, and whatever `answer` needs beside them, a dict of
            tensors.
        """
        return self.complete(self.preprocessor(*columns)), {}

    def complete(self, inputs):
        """The model's inputs from those that the preprocessor makes."""
        return inputs

    def select(self, outputs, inputs):
        """What counts of the model's outputs, of one batch of rows: a dict of tensors."""
        return {"output": tf.cast(single_output(outputs), tf.float32)}

    def answer(self, outputs, inputs, state):
        """What `select` gave, all rows together, to the answers: a dict of tensors, B of each."""
        raise NotImplementedError

    def answer_ids(self, outputs, inputs):
        """`answer` to ids of which no text is known: a dict of tensors, B of each."""
        answer = self.answer(outputs, inputs, {})
        return {key: answer[key] for key in self.id_meanings or self.meanings}

    def answer_eagerly(self, outputs, inputs, state):
        """`answer`, where the model runs under any backend and no graph is made."""
        return self.answer(outputs, inputs, state)

    def rows(self, answer):
        """The same as a list of dict of Python values, one for each request."""
        values = [as_python(value) for value in answer.values()]
        return [dict(zip(answer, row, strict=True)) for row in zip(*values, strict=True)]


def single_output(outputs):
    """The only output of a model, whether it is bare or in a dict of one.

    Raises:
        ValueError: there are several.
    """
    flat = keras.tree.flatten(outputs)
    if len(flat) != 1:
        names = sorted(outputs) if isinstance(outputs, dict) else len(flat)
        raise ValueError(f"`model` must have exactly one output for this task. Received: {names}")
    return flat[0]


def count_filled(values, name):
    """int32 (B,), how many strings of each row stand before the first "".

    Args:
        values: string (B, N), "" behind the last of each row; with anything behind that, an error.
        name: str, what to call them there.
    """
    filled = tf.cast(values != "", tf.int32)
    count = tf.reduce_sum(tf.math.cumprod(filled, axis=1), axis=1)
    right = tf.reduce_all(count == tf.reduce_sum(filled, axis=1))
    message = f"`{name}` must be empty behind the last of a row only. Received, all:"
    with tf.control_dependencies([tf.debugging.Assert(right, [message, values])]):
        return tf.identity(count)


def check_texts(texts, name, first=0):
    """Raises a TypeError that says which of a list of texts is none."""
    for index, text in enumerate(texts, first):
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"`{name}[{index}]` must be a str. Received: {text!r}")


def as_python(value):
    """A tensor as a list, nested as it is; strings as str."""
    return decoded(
        value.to_list() if isinstance(value, tf.RaggedTensor) else np.asarray(value).tolist()
    )


def decoded(value):
    """Nested lists in which bytes have become str."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
