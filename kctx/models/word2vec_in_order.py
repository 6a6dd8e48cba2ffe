"""Word2Vec pair after pair, exactly as the original C tool with one thread: the plain path.

Written to be read, and for the fast way to be tested against. All numbers are float32, as in the
tool; its random numbers, its tables and its roundings are reproduced.
"""

import bisect
import math

import numpy as np

from kctx.arguments import check_choice, check_count

_MASK = (1 << 64) - 1
_NOISE_SLOTS = 100_000_000
_LARGEST_SCORE = 6
_SIGMOID_SIZE = 1000
_SIGMOID_STEPS = _SIGMOID_SIZE // _LARGEST_SCORE // 2  # 83 for each unit; 83.33 was meant


class Draws:
    """The tool's random numbers, a linear congruential generator of 64 bits.

    Args:
        state: int; training begins with the number of the thread, 0.
    """

    def __init__(self, state=0):
        self.state = state

    def next(self):
        """int in [0, 2 ** 64)."""
        self.state = (self.state * 25214903917 + 11) & _MASK
        return self.state

    def uniform(self):
        """float in [0, 1), one of 65,536."""
        return (self.next() & 0xFFFF) / 65536


def initial_table(vocabulary_size, dim):
    """float32 (V, D), uniform in [-0.5, 0.5) / D, row by row from seed 1."""
    draws = Draws(1)
    values = [draws.uniform() - 0.5 for _ in range(vocabulary_size * dim)]
    table = np.array(values, np.float32) / np.float32(dim)
    return table.reshape(vocabulary_size, dim)


def sigmoid_table():
    """float32 (1000,): the sigmoid at steps from -6 to 6."""
    place = np.arange(_SIGMOID_SIZE, dtype=np.float32) / np.float32(_SIGMOID_SIZE)
    powers = np.exp(((place * 2 - 1) * _LARGEST_SCORE).astype(np.float64)).astype(np.float32)
    return powers / (powers + 1)


def noise_ends(counts, slots=_NOISE_SLOTS):
    """The last slot of each word in the tool's table of negatives.

    The tool fills a table of 10^8 ids: slot after slot gets the present word, and the next one
    becomes present once a / slots exceeds the sum of probabilities up to this one. So every word
    has a slot at least. The ends say the same without the table.

    Args:
        counts: int (V,).
        slots: int, size of the table.

    Returns:
        list of V ints; the last is `slots` - 1. A slot's word is `bisect_left(ends, slot)`.
    """
    powers = [math.pow(count, 0.75) for count in counts]
    total = 0.0
    for power in powers:
        total += power
    bound, end, ends = 0.0, -1, []
    for power in powers:
        bound += power / total
        # The first slot a with a / slots > bound, by the same rounding; then one at least.
        slot = max(0, int(bound * slots) - 1)
        while not slot / slots > bound:
            slot += 1
        end = max(end + 1, slot)
        ends.append(min(end, slots - 1))
    ends[-1] = slots - 1
    return ends


class Word2VecInOrder:
    """The C tool's training, one update after the other.

    Args:
        counts: int (V,), of the words; place 0 is the end of a line.
        dim: D.
        architecture: "skip_gram" or "cbow" (mean).
        tree: `kctx.vectors.huffman.HuffmanTree` of `counts`, for hierarchical softmax. Default:
            none.
        num_negatives: int; 0: none. Default 0.
        window: int. Default 5.
        sample: float; 0: all words are kept. Default 1e-3.
        learning_rate: float. Default 0.025.
        epochs: int, passes that the rate falls over. Default 5.
        max_sentence_words: longer sentences are cut. Default 1000.

    Attributes:
        input_table: float32 (V, D), the vectors.
        node_table: float32 (V - 1, D), of the inner nodes of the tree.
        output_table: float32 (V, D), of the words as what is predicted.
    """

    def __init__(
        self,
        counts,
        dim,
        architecture="skip_gram",
        tree=None,
        num_negatives=0,
        window=5,
        sample=1e-3,
        learning_rate=0.025,
        epochs=5,
        max_sentence_words=1000,
    ):
        check_choice("architecture", architecture, ("skip_gram", "cbow"))
        check_count("num_negatives", num_negatives, least=0)
        self.counts, self.architecture, self.tree = counts, architecture, tree
        self.num_negatives, self.window, self.epochs = num_negatives, window, epochs
        self.sample, self.max_sentence_words = np.float32(sample), max_sentence_words
        self.num_tokens = int(sum(counts))
        self.starting_rate = self.rate = np.float32(learning_rate)
        self.input_table = initial_table(len(counts), dim)
        self.node_table = np.zeros((len(counts) - 1, dim), np.float32)
        self.output_table = np.zeros((len(counts), dim), np.float32)
        self.sigmoid, self.noise = sigmoid_table(), noise_ends(counts)
        self.draws = Draws(0)
        self._seen = self._seen_at_last_rate = 0

    def train(self, lines):
        """All passes over a text.

        In the published tool every pass but the first is empty if there is one thread, since the
        flag of the file's end stays up; here it is taken down.

        Args:
            lines: list of lists of ids in 1 ... V - 1, words outside the vocabulary left out. The
                end of each line counts as one more word.
        """
        for _ in range(self.epochs):
            for sentence in self._sentences(lines):
                if not sentence:
                    self.draws.next()  # the tool draws a window before it sees that there is none
                for position in range(len(sentence)):
                    self._train_position(sentence, position)
                    self._renew_rate()
            self._seen_at_last_rate = self._seen  # the tool counts anew, but keeps the rate

    def _sentences(self, lines):
        """Lines with frequent words left out, and cut; counts the words of the text."""
        for line in lines:
            sentence = []
            for word in line:
                self._seen += 1
                if not self._kept(word):
                    continue
                sentence.append(word)
                if len(sentence) >= self.max_sentence_words:
                    yield sentence
                    sentence = []
            self._seen += 1  # the end of the line
            yield sentence

    def _kept(self, word):
        if not self.sample:
            return True
        count, share = self.counts[word], self.sample * np.float32(self.num_tokens)
        chance = np.float32((math.sqrt(np.float32(count) / share) + 1) * float(share) / count)
        return not chance < self.draws.uniform()

    def _renew_rate(self):
        if self._seen - self._seen_at_last_rate <= 10_000:
            return
        self._seen_at_last_rate = self._seen
        whole = np.float32(self.epochs * self.num_tokens + 1)
        rate = self.starting_rate * (1 - np.float32(self._seen) / whole)
        self.rate = max(np.float32(rate), self.starting_rate * np.float32(1e-4))

    def _train_position(self, sentence, position):
        reach = self.window - self.draws.next() % self.window
        first, last = max(0, position - reach), min(len(sentence) - 1, position + reach)
        context = [sentence[c] for c in range(first, last + 1) if c != position]
        centre, table = sentence[position], self.input_table
        if self.architecture == "skip_gram":
            # The context word is the input and the centre is predicted, not the other way round.
            for word in context:
                table[word] += self._predict(centre, table[word])
        elif context:
            hidden = np.zeros(table.shape[1], np.float32)
            for word in context:
                hidden += table[word]
            error = self._predict(centre, hidden / np.float32(len(context)))
            for word in context:
                table[word] += error  # whole, though the words were averaged

    def _predict(self, centre, hidden):
        """Updates the rows that predict the centre; returns the update of the hidden vector."""
        error = np.zeros_like(hidden)
        if self.tree is not None:
            for node, code in self._path(centre):
                score = hidden @ self.node_table[node]
                if abs(score) < _LARGEST_SCORE:  # else the tool leaves the node out
                    step = (1 - code - self._sigmoid(score)) * self.rate
                    self._update(self.node_table, node, step, hidden, error)
        for target, label in self._targets(centre):
            score = hidden @ self.output_table[target]
            if score > _LARGEST_SCORE:
                step = (label - 1) * self.rate
            elif score < -_LARGEST_SCORE:
                step = label * self.rate
            else:
                step = (label - self._sigmoid(score)) * self.rate
            self._update(self.output_table, target, step, hidden, error)
        return error

    def _path(self, word):
        length = self.tree.lengths[word]
        return zip(self.tree.points[word, :length], self.tree.codes[word, :length], strict=True)

    def _targets(self, centre):
        """(word, label): the centre, then negatives; fewer of them if the centre is drawn."""
        if not self.num_negatives:
            return
        yield centre, 1
        for _ in range(self.num_negatives):
            drawn = self.draws.next()
            word = bisect.bisect_left(self.noise, (drawn >> 16) % _NOISE_SLOTS)
            if word == 0:
                word = drawn % (len(self.counts) - 1) + 1
            if word != centre:
                yield word, 0

    def _sigmoid(self, score):
        # A score of exactly 6 would read behind the steps that are used, but within the table.
        return self.sigmoid[int((score + np.float32(_LARGEST_SCORE)) * _SIGMOID_STEPS)]

    @staticmethod
    def _update(table, row, step, hidden, error):
        step = np.float32(step)
        error += step * table[row]
        table[row] += step * hidden
