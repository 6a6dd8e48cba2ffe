"""A model that takes raw text."""

import itertools
from collections.abc import Iterable

import numpy as np

from kctx.arguments import check_count
from kctx.heads import encoder_of
from kctx.presets.progress import tracked
from kctx.presets.task import check_task, find_encoder
from kctx.presets.writing import save
from kctx.tasks import Embedding, WordEmbedding, make_task
from kctx.tasks.batches import axis_sizes, run_rows, stacked
from kctx.training import default_jit


class TextModel:
    """A model with its preprocessor, its task and its labels: what a preset folder holds.

    Args:
        model: keras.Model.
        preprocessor: of `kctx.preprocessors`, or None.
        task: str, a key of `kctx.tasks.TASKS`, or None.
        labels: list of str, for classification and tagging.
        options: dict, options of the task that differ from its defaults, see its class.
    """

    def __init__(self, model, preprocessor=None, task=None, labels=None, options=None):
        self.model = model
        self.preprocessor = preprocessor
        self.task = task
        self.labels = labels
        self.options = dict(options or {})
        self._made = {}  # tasks and embedders, which hold what was compiled
        if not model.compiled:
            # Keras by itself would have XLA compile TensorFlow's predictions, on a CPU too.
            model.jit_compile = default_jit()

    @property
    def encoder(self):
        """The encoder that is a part of the model; ValueError where none, or several are."""
        return encoder_of(self.model)

    def predict(self, *requests, batch_size=32, progress=None, **named):
        """Answers raw texts.

        What is given depends on the task: lists of equal length, or one request alone.

            classification, regression  texts, and pairs where the model was taught on pairs
            tagging                     texts, or lists of words; predicates for a `RoleTagger`
            span                        questions, contexts
            multiple_choice             contexts, choices (a list of texts each)
            similarity                  texts, others
            coreference                 texts, mentions (a list of (start, end) each, code points),
                                        or lists of words and mentions in numbers of words
            embedding, masked_lm        texts

        The answer to a request does not depend, beyond rounding, on what else is asked.

        Args:
            *requests: lists of str (or bytes in UTF-8), in this order or by name.
            batch_size: int, rows that the model sees at a time. Default 32.
            progress: bool, whether a bar is shown. Default: where there are many requests and
                somebody to look at it.
            **named: further lists by name, and options of the task, see its class in `kctx.tasks`.

        Returns:
            list of dict, one for each request, in their order. No requests, no answers: [].

            classification   `label` str, `score`, its probability, `scores`, dict by label
            regression       `score`, the number
            tagging          `words`, `tags`, `scores`, and `entities`: `text`, `label`, `start`,
                             `end` (code points of the text; of the words joined by spaces, where
                             words were given), `score`
            span             `answer` ("" for none), `start`, `end` (code points of the context),
                             `score`, its probability, `no_answer_probability`
            multiple_choice  `index`, `choice`, `scores`, one for each choice
            similarity       `score`, the cosine
            coreference      `mentions`: `text`, `start`, `end`, `antecedent` (number of the mention
                             that it goes back to, or None), `score`, its probability; `clusters`,
                             lists of the numbers of mentions that name the same
            embedding        `embedding`, list of float
            masked_lm        `tokens` and `scores`, the best for each mask, `mask_count`

        Raises:
            ValueError: the model has no task or no preprocessor; unequal lengths; something the
                task or the preprocessor does not take.
            TypeError: something in a list is not what it must be.
            FloatingPointError: a score is NaN or infinite.
        """
        task, columns = self._asked(requests, named)
        task.check(columns)
        answers = []
        with tracked(progress, len(columns[0]), "answers") as advance:
            for start, chunk in _chunks(task, zip(*columns, strict=True), batch_size):
                chunk = [list(column) for column in zip(*chunk, strict=True)]
                answers += task.rows(_outputs(task, chunk, batch_size, start))
                advance(len(chunk[0]))
        return answers

    def predict_stream(self, requests, batch_size=32, **options):
        """Answers any number of requests one after the other, in bounded memory.

        Args:
            requests: iterable of requests: a text (or list of words), a tuple of a request's parts
                in the order of `predict`, or a dict of them by their names in an exported
                signature: "text", "text_pair", "words", "question", "context", "choices", ...
            batch_size: int.
            **options: of the task.

        Yields:
            dict, see `predict`. About `batch_size` x 32 requests are read ahead, so that those
            of like lengths go together.
        """
        task = self.asked(**options)
        for start, chunk in _chunks(task, requests, batch_size):
            rows = [task.parts(request, place) for place, request in enumerate(chunk, start)]
            sizes = sorted({len(row) for row in rows})
            if len(sizes) > 1:
                raise ValueError(
                    f"Requests must have the same number of parts. Received: {sizes} among the "
                    f"{len(rows)} from number {start}"
                )
            columns = [list(column) for column in zip(*rows, strict=True)]
            yield from task.rows(_outputs(task, columns, batch_size, start))

    def embed(self, texts, pooling="mean", batch_size=32, normalize=False, progress=None):
        """A vector for each text, from the encoder in the model.

        Args:
            texts: list of str (or bytes in UTF-8), or one.
            pooling: "mean", "cls", "max", "pooled", "last4_mean" or "last4_concat", see
                `kctx.tasks.embedding.EncoderPooling`.
            batch_size: int, texts that the encoder sees at a time.
            normalize: bool, whether vectors get length 1, so that products are cosines.
            progress: bool, as of `predict`.

        Returns:
            float32 (N, D)

        Raises:
            ValueError, TypeError, FloatingPointError: as of `predict`.
        """
        texts = _listed(texts, "texts")
        task = self._embedding(Embedding, pooling=pooling)
        task.check([texts])
        found = np.zeros((len(texts), task.model.output.shape[-1]), "float32")
        with tracked(progress, len(texts), "embeddings") as advance:
            stream = self.embed_stream(texts, pooling, batch_size, normalize)
            for place, vector in enumerate(stream):
                found[place] = vector
                advance(1)
        return found

    def embed_stream(self, texts, pooling="mean", batch_size=32, normalize=False):
        """As `embed`, for any iterable of texts, in bounded memory: yields float32 (D,)."""
        task = self._embedding(Embedding, pooling=pooling)
        for start, chunk in _chunks(task, texts, batch_size):
            vectors = _outputs(task, [chunk], batch_size, start)["embedding"]
            yield from _unit(vectors) if normalize else np.asarray(vectors)

    def embed_words(
        self,
        texts,
        pooling="mean",
        layers="last",
        split="words",
        batch_size=32,
        normalize=False,
    ):
        """A vector for each word in its context.

        Texts that are too long are read in windows; each word's vector comes from the window where
        it has most context.

        Args:
            texts: iterable of str, or of lists of words, which must not be mixed.
            pooling: "mean" of a word's pieces, or the "first".
            layers: "last", or "last4_mean", the mean of the last four.
            split: "words" or "characters", what is a word in a str.
            batch_size: int.
            normalize: bool, whether vectors get length 1.

        Yields:
            (words, vectors): list of str, and float32 (W, D), for each text.
        """
        options = {"pooling": pooling, "layers": layers, "split": split}
        task = self._embedding(WordEmbedding, **options)
        for start, chunk in _chunks(task, texts, batch_size):
            for words, vectors in task.rows(_outputs(task, [chunk], batch_size, start)):
                yield words, _unit(vectors) if normalize else vectors

    def save(self, folder):
        """Writes the preset folder, see `kctx.presets.save`."""
        save(folder, self.model, self.preprocessor, self.task, self.labels, self.options)

    def describe(self):
        """A few lines on what this is: str."""
        lines = [f"model         {self.model.name}, {self.model.count_params():,} parameters"]
        encoder = find_encoder(self.model)
        if encoder is not None:
            lines.append(
                f"encoder       {type(encoder).__name__} {encoder.name}, "
                f"{encoder.count_params():,} parameters, {encoder.dtype_policy.name}"
            )
        lines.append(f"task          {self.task or 'none'}")
        if self.labels:
            lines.append(f"labels        {', '.join(self.labels)}")
        if self.options:
            options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
            lines.append(f"options       {options}")
        if self.preprocessor is not None:
            tokenizer = self.preprocessor.tokenizer
            lines.append(
                f"preprocessor  {type(self.preprocessor).__name__} with "
                f"{type(tokenizer).__name__}, {tokenizer.vocabulary_size:,} entries, up to "
                f"{self.preprocessor.sequence_length} tokens"
            )
        return "\n".join(lines)

    def asked(self, **options):
        """The `kctx.tasks.Task` of this model: what it takes and how it answers.

        Args:
            **options: in place of those of the model.

        Raises:
            ValueError: there is no task, or no preprocessor; unknown options; a task or labels
                that are not the model's.
        """
        if self.task is None or self.preprocessor is None:
            other = ""
            if self.task is None and self.preprocessor is not None:
                other = ". A model without a task gives vectors: `TextModel.embed`, kctx embed"
            raise ValueError(
                "`predict` needs a task and a preprocessor. "
                f"Received: task={self.task!r}, preprocessor={self.preprocessor!r}{other}"
            )
        options = {**self.options, **options}
        labels = None if self.labels is None else tuple(self.labels)
        parts = (self.task, id(self.model), id(self.preprocessor), labels)
        key = (*parts, repr(sorted(options.items())))
        if key not in self._made:
            task, labels = check_task(self.model, self.task, self.labels)
            self._made[key] = make_task(task, self.model, self.preprocessor, labels, options)
        return self._made[key]

    def _embedding(self, kind, **options):
        """A task that is not the model's own, but its encoder's."""
        if self.preprocessor is None:
            raise ValueError("Embeddings need a preprocessor. Received: preprocessor=None")
        key = (kind, id(self.model), id(self.preprocessor), repr(options))
        if key not in self._made:
            self._made[key] = kind(self.model, self.preprocessor, **options)
        return self._made[key]

    def _asked(self, requests, named):
        """The task and its columns: lists of equal length."""
        task = self.asked()
        arguments = list(task.arguments)
        options = {key: value for key, value in named.items() if key not in arguments}
        task = self.asked(**options) if options else task
        if len(requests) > len(arguments):
            raise TypeError(
                f"{self.task} takes {', '.join(arguments)}. Received: {len(requests)} lists"
            )
        given = dict(zip(arguments, requests, strict=False))
        twice = sorted(set(given) & set(named))
        if twice:
            raise TypeError(f"`{twice[0]}` was given twice.")
        given |= {key: value for key, value in named.items() if key in arguments}
        given = {key: given[key] for key in arguments if given.get(key) is not None}
        missing = [key for key, needed in task.arguments.items() if needed and key not in given]
        if missing:
            raise TypeError(f"{self.task} needs `{'` and `'.join(missing)}`.")
        first = next(iter(given))
        columns = {key: _listed(value, key) for key, value in given.items()}
        if isinstance(given[first], (str, bytes)):
            # Of one request, a part that is a list itself is given as it is.
            for field in task.fields.values():
                column = columns.get(field.argument, [])
                if len(field.axes) > 1 and field.argument != first and _is_of_one(column, field):
                    columns[field.argument] = [column]
        for key, column in columns.items():
            if len(column) != len(columns[first]):
                raise ValueError(
                    f"`{key}` must be as many as `{first}`: {len(columns[first])}. "
                    f"Received: {len(column)}"
                )
        return task, list(columns.values())


def _outputs(task, columns, batch_size, first):
    """The answer to some requests, as tensors.

    Args:
        columns: list of lists, one for each argument.
        first: int, number of the first request.
    """
    signature = task.check(columns, first)
    inputs, state = task.prepare(signature, *task.tensors(columns))
    limit = task.preprocessor.sequence_length
    rows = run_rows(task.model, task.inputs, inputs, task.select, batch_size, limit)
    sizes = axis_sizes(task.inputs, inputs)
    outputs = stacked(rows, [sizes[axis] for axis in task.output_axes[1:]])
    return task.answer_eagerly(outputs, inputs, state)


def _unit(vectors):
    """Vectors (N, D) of length 1; 0 stays 0."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


def _chunks(task, requests, batch_size):
    """What is answered together: yields (number of the first request, list of requests)."""
    check_count("batch_size", batch_size)
    if isinstance(requests, (str, bytes)):
        raise TypeError(f"A text by itself must stand in a list. Received: {requests!r}")
    requests, start = iter(requests), 0
    while chunk := list(itertools.islice(requests, batch_size * task.batches_at_once)):
        yield start, chunk
        start += len(chunk)


def _listed(column, name):
    """A column as a list; what is one str or int by itself becomes a list of one."""
    if isinstance(column, (str, bytes, int)):
        return [column]
    if isinstance(column, dict) or not isinstance(column, Iterable):
        raise TypeError(f"`{name}` must be a list. Received: {column!r}")
    return list(column)


def _is_of_one(column, field):
    """Whether a list is what one request holds, rather than that of several."""
    if field.dtype != "string":  # pairs of numbers, or lists of them
        pairs = (pair for pair in column if isinstance(pair, (list, tuple)))
        return not any(isinstance(x, (list, tuple)) for pair in pairs for x in pair)
    return bool(column) and all(isinstance(text, (str, bytes)) for text in column)
