"""The n-gram language model."""

import numbers

import numpy as np

from kctx.arguments import check_count
from kctx.ngrams import scoring
from kctx.ngrams.arpa_reading import read_tables
from kctx.ngrams.arpa_writing import write_tables
from kctx.ngrams.counting import count_ngrams
from kctx.ngrams.distributions import Distributions, sampled
from kctx.ngrams.options import Options
from kctx.ngrams.storage import load_parts, save_parts
from kctx.ngrams.tables import IMPOSSIBLE
from kctx.ngrams.text import (
    END,
    SPECIAL_WORDS,
    START,
    Ids,
    WordIds,
    blocks_of,
    checked_source,
    split_words,
    to_bytes,
    to_text,
)
from kctx.ngrams.training import estimate


class NGramLM:
    """An n-gram language model of order 1 to 6: `log10 p(word | up to order - 1 words before)`.

    Made by `train`, `from_counts`, `read_arpa` or `load`. A sentence is its words and one `</s>`;
    one `<s>` before it is context only and never predicted. `|V|` counts what can be predicted:
    words, `</s>` and `<unk>`. For every context the probabilities of these sum to one. Words in
    scored text that are not in the vocabulary are `<unk>`; so are `<s>`, `</s>` and `<unk>`
    themselves where a text holds them, so that a text cannot fake the edge of a sentence.

    Args:
        tables: `BackoffTables`.
        smoothing: str, how it was made; "arpa" for one that was read.
        details: dict of JSON values: discounts, weights and the like.
        mixture: `JointMixture`, or None for a model that is a back-off table.
    """

    def __init__(self, tables, smoothing, details=None, mixture=None):
        self.tables = tables
        self.smoothing = smoothing
        self.details = details or {}
        self._mixture = mixture
        self._distributions = Distributions(tables, mixture)
        self._word_ids = None
        self._vocabulary = None

    @classmethod
    def train(
        cls,
        files=(),
        lines=None,
        order=5,
        smoothing="kneser_ney",
        *,
        vocabulary=None,
        special_words="error",
        empty_lines=True,
        memory_limit=None,
        temporary_folder=None,
        progress=True,
        **options,
    ):
        """Counts text and estimates a model.

        Args:
            files, lines, vocabulary, special_words, empty_lines, memory_limit, temporary_folder,
                progress: as `count_ngrams`.
            order: int from 1 to 6. Default 5.
            smoothing: "kneser_ney" (interpolated, modified, as KenLM's `lmplz`), "katz",
                "jelinek_mercer", "add_k" or "mle".
            options: the other attributes of `kctx.ngrams.Options`: `prune`, `k`, `katz_limit`,
                `held_out`, `held_out_files`, `weights`, `buckets`, `iterations`,
                `discount_fallback`, `interpolate_unigrams`, `vocabulary_pad`.

        Raises:
            ValueError: as `count_ngrams`, or an option out of range, or no discounts.
        """
        options = Options(smoothing, special_words=special_words, **options)
        options.for_order(order)
        counts = count_ngrams(
            files,
            lines,
            order,
            vocabulary,
            special_words,
            empty_lines,
            memory_limit,
            temporary_folder,
            progress,
        )
        return cls._estimated(counts, options)

    @classmethod
    def from_counts(cls, counts, smoothing="kneser_ney", **options):
        """Estimates a model from `NGramCounts`; options as `train`."""
        return cls._estimated(counts, Options(smoothing, **options))

    @classmethod
    def _estimated(cls, counts, options):
        tables, mixture, details = estimate(counts, options)
        return cls(tables, options.smoothing, details, mixture)

    @property
    def order(self):
        """int, the longest n-gram."""
        return self.tables.order

    @property
    def sizes(self):
        """Number of listed n-grams of each order."""
        return self.tables.sizes

    @property
    def vocabulary(self):
        """list of str, the word of each id: `<unk>` 0, `<s>` 1, `</s>` 2, then the words."""
        if self._vocabulary is None:
            self._vocabulary = [to_text(word) for word in self.tables.words]
        return self._vocabulary

    def ids(self, words):
        """(N,) int32 ids of words; `<unk>`, `<s>` and `</s>` stand for themselves."""
        known = self._known_words()
        return np.fromiter((known[to_bytes(word)] for word in words), np.int32)

    def score(self, sentences, per_token=False):
        """log10 probability of each sentence, `</s>` included.

        Args:
            sentences: iterable of str, words set apart by spaces.
            per_token: bool, whether to give an array of log10 probabilities for each sentence
                instead, one for each word and one for `</s>`.

        Returns:
            (N,) float64, or list of (words + 1,) float64.
        """
        if isinstance(sentences, (str, bytes)):
            raise ValueError(
                f"`sentences` must be several texts. Received: {sentences[:80]!r}; give [text]"
            )
        parts = []
        for ids, logs in self._scored((), sentences):
            ends = np.flatnonzero(ids == END) + 1
            if per_token:
                parts.extend(np.split(logs, ends[:-1]))
            else:
                parts.append(np.add.reduceat(logs, np.concatenate([[0], ends[:-1]])))
        if per_token:
            return parts
        return np.concatenate(parts) if parts else np.zeros(0)

    def perplexity(self, files=(), lines=None):
        """`Perplexity` of text: files, or an iterable of sentences."""
        return scoring.perplexity(self._scored(files, lines))

    def log_probabilities(self, context_ids, word_ids):
        """log10 p(word | context) of many positions.

        Args:
            context_ids: (N, C) int ids in the order of the text; the last order - 1 count. -1, left
                of the words, where there is no context: `<s>` is not added.
            word_ids: (N,) int ids.

        Returns:
            (N,) float64, -inf where impossible, as `<s>` always is.
        """
        context_ids, word_ids = np.asarray(context_ids), np.asarray(word_ids)
        if word_ids.ndim != 1 or context_ids.ndim != 2 or len(context_ids) != len(word_ids):
            raise ValueError(
                "`context_ids` must be of shape (N, C) and `word_ids` of shape (N,). Received: "
                f"{context_ids.shape}, {word_ids.shape}"
            )
        self._check_ids("word_ids", word_ids, 0)
        columns = self._context_columns(context_ids)
        contexts = self.tables.chain(columns) if columns else []
        ngrams = self.tables.chain([word_ids, *columns])
        logs = self._log_probabilities(columns, contexts, ngrams)
        return np.where(word_ids == START, IMPOSSIBLE, logs)

    def distribution(self, context_ids):
        """Probabilities of all words after each context.

        Args:
            context_ids: (N, C) int, as `log_probabilities`.

        Returns:
            (N, len(vocabulary)) float64; rows sum to one, `<s>` has 0.
        """
        context_ids = np.asarray(context_ids)
        if context_ids.ndim != 2:
            raise ValueError(
                f"`context_ids` must be of shape (N, C). Received: {context_ids.shape}"
            )
        columns = self._context_columns(context_ids)
        contexts = self.tables.chain(columns) if columns else []
        return self._distributions.after(columns, contexts, len(context_ids))

    def probability(self, word, context=()):
        """float, p(word | context).

        Args:
            word: str.
            context: list of str, `<s>` first where a sentence begins.
        """
        if isinstance(context, (str, bytes)):
            raise ValueError(f"`context` must be a list of words. Received: {context!r}")
        ids = self.ids(context)[None]
        return float(10.0 ** self.log_probabilities(ids, self.ids([word]))[0])

    def sample(self, number=1, seed=0, prefix="", max_words=50, temperature=1.0, unknown=False):
        """Draws sentences.

        Args:
            number: int, of sentences. Default 1.
            seed: int; the same seed draws the same sentences.
            prefix: str, words that each begins with.
            max_words: int, a sentence that has not ended by then is cut.
            temperature: float above 0; below 1 likely words gain. Default 1.
            unknown: bool, whether `<unk>` may be drawn. Default False.

        Returns:
            list of str.
        """
        check_count("number", number)
        check_count("max_words", max_words)
        check_count("seed", seed, least=0)
        if not isinstance(temperature, numbers.Real) or not 0 < temperature < np.inf:
            raise ValueError(f"`temperature` must be above 0. Received: {temperature!r}")
        rng, words = np.random.default_rng(seed), split_words(prefix)
        ids = self.ids("<unk>" if to_bytes(x) in SPECIAL_WORDS else x for x in words).tolist()
        sentences = []
        for _ in range(number):
            drawn = sampled(self, rng, ids, max_words - len(words), temperature, unknown)
            sentences.append(" ".join([*words, *(self.vocabulary[index] for index in drawn)]))
        return sentences

    def write_arpa(self, path):
        """Writes an ARPA file; a name that ends with `.gz` is packed.

        Raises:
            ValueError: the model is a joint mixture, which back-off tables cannot hold.
        """
        if self._mixture is not None:
            raise ValueError(
                'A model with buckets="joint" has no ARPA form: its weights depend on the longest '
                'context at all orders. Use `save`, or train with buckets="nested".'
            )
        write_tables(self.tables, path)

    @classmethod
    def read_arpa(cls, path, progress=True, positive="error"):
        """Reads an ARPA file, as `read_arpa`."""
        return cls(read_tables(path, progress, positive), "arpa")

    def save(self, folder):
        """Writes a folder of arrays, whole or not at all, that `load` maps into memory."""
        save_parts(folder, self.tables, self.smoothing, self.details, self._mixture)

    @classmethod
    def load(cls, folder, memory_map=True):
        """Reads what `save` wrote.

        Args:
            folder: path.
            memory_map: bool, whether the tables stay in their files until used. Default True.

        Raises:
            ValueError: files that do not fit together; names them.
            FileNotFoundError: no such folder or file.
        """
        return cls(*load_parts(folder, memory_map))

    def __repr__(self):
        sizes = " + ".join(f"{size:,}" for size in self.sizes)
        return f"NGramLM(order={self.order}, smoothing={self.smoothing!r}, {sizes} n-grams)"

    def _known_words(self):
        if self._word_ids is None:
            words = self.tables.words[3:]
            self._word_ids = WordIds()
            self._word_ids.update(zip(words, range(3, 3 + len(words)), strict=True))
            self._word_ids.open = False
        return self._word_ids

    def _scored(self, files, lines):
        """(ids, log10 p) of whole sentences, batch by batch."""
        files = checked_source(files, lines)
        reader = Ids(self._known_words(), "unknown")
        for ids in scoring.whole_sentences(reader.of(blocks_of(files, lines))):
            yield ids, self._log_probabilities(*scoring.positions(self.tables, ids))

    def _log_probabilities(self, columns, contexts, ngrams):
        if self._mixture is None:
            return self.tables.log_probabilities(contexts, ngrams)
        return self._mixture.log_probabilities(self.tables, columns, contexts, ngrams)

    def _context_columns(self, context_ids):
        self._check_ids("context_ids", context_ids, -1)
        wide = context_ids.shape[1]
        return [context_ids[:, wide - 1 - k] for k in range(min(self.order - 1, wide))]

    def _check_ids(self, name, ids, least):
        if not np.issubdtype(ids.dtype, np.integer) and ids.size:
            raise ValueError(f"`{name}` must be integers. Received dtype: {ids.dtype}")
        if ids.size and (ids.min() < least or ids.max() >= len(self.tables.words)):
            raise ValueError(
                f"`{name}` must be from {least} to {len(self.tables.words) - 1}. Received: "
                f"{ids.min()} to {ids.max()}"
            )
