"""A tokenizer of the library's interface without rules: a word is a piece, long words are two."""

import threading

import numpy as np
import tensorflow as tf

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class StandInTokenizer:
    """Words `w0` .. `w{n-1}`; a word `w7+w9` gives the pieces `w7` and `##w9`. Counts its work."""

    padding_id, unknown_id, start_id, separator_id, mask_id = range(5)

    def __init__(self, words=500):
        self.words = words
        self.vocabulary = (
            SPECIAL + [f"w{i}" for i in range(words)] + [f"##w{i}" for i in range(words)]
        )
        self.vocabulary_size = len(self.vocabulary)
        self.calls, self.texts = 0, 0
        self.lock = threading.Lock()

    def ids(self, text):
        ids = []
        for word in text.split():
            pieces = word.split("+")
            for i, piece in enumerate(pieces):
                number = int(piece[1:]) if piece[1:].isdigit() else None
                if number is None:
                    ids.append(self.unknown_id)
                else:
                    ids.append(5 + number + (self.words if i else 0))
        return ids

    def __call__(self, texts):
        with self.lock:
            self.calls += 1
            self.texts += len(texts)
        rows = [self.ids(text) for text in texts]
        flat = np.asarray([i for row in rows for i in row], np.int32)
        return tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in rows])

    def get_config(self):
        return {"words": self.words}


def write_corpus(path, documents=200, sentences=(2, 14), words=(3, 12), seed=0, vocabulary=500):
    """A file of random documents. Every sentence of document d holds words = d modulo documents.

    So the document of a token is known: `(id - 5) % 500 % documents` if documents divide 500.
    """
    rng = np.random.default_rng(seed)
    blocks = []
    for document in range(documents):
        lines = []
        for _ in range(int(rng.integers(*sentences))):
            own = rng.integers(0, vocabulary // documents, int(rng.integers(*words)))
            pieces = [f"w{document + documents * int(i)}" for i in own]
            for place in range(len(pieces) - 1, 0, -1):
                if rng.random() < 0.25:
                    pieces[place - 1] += "+" + pieces.pop(place)
            lines.append(" ".join(pieces))
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path
