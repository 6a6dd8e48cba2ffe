"""Makes fasttext.npz: models and answers of the reference implementation of fastText.

    python tests/parity/make_fasttext.py        (needs a wheel of fastText, such as fasttext-wheel)

The text is made up here, so nothing of others is stored. For each model the file as bytes and:

unsupervised  vectors of words in and outside the vocabulary, bytes that are not UTF-8 among them;
              buckets of n-grams, sentence vectors, neighbours, analogies, and the .vec file
supervised    the probability of every label for each text, sentence vectors
"""

import random
import tempfile
from pathlib import Path

import fasttext
import numpy as np
from fasttext_texts import OUTSIDE, RAW, TEXTS

WORDS = (
    "red blue green gold where über straße naïve 日本語 日本 город дом a ab abc 😀 e\u0301t".split()
)
LABELS = ["one", "two", "drei", "四", "five"]
SUPERVISED = {
    "softmax": {"loss": "softmax", "wordNgrams": 2, "bucket": 60},
    "hs": {"loss": "hs", "minn": 2, "maxn": 3, "bucket": 60},
    "ns": {"loss": "ns", "wordNgrams": 3, "minn": 3, "maxn": 3, "bucket": 60},
    "ova": {"loss": "ova"},
}


def write_text(path, labels):
    draw = random.Random(0)
    lines = []
    for _ in range(600):
        label = draw.randrange(len(LABELS))
        words = draw.choices(WORDS[label * 2 : label * 2 + 9], k=draw.randrange(3, 9))
        start = [f"__label__{LABELS[label]}"] if labels else []
        lines.append(" ".join([*start, *words, f"w{draw.randrange(250)}"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def data_of(model, path):
    model.save_model(str(path))
    return np.fromfile(path, np.uint8)


def main():
    stored = {}
    # With fewer than 11 threads the reference leaves rows of its first matrix as it finds them.
    with tempfile.TemporaryDirectory() as folder:
        text, path = Path(folder) / "text.txt", Path(folder) / "model.bin"
        write_text(text, labels=False)
        for kind, name in (("skipgram", "skipgram"), ("cbow", "cbow")):
            model = fasttext.train_unsupervised(
                str(text), kind, dim=4, bucket=50, minCount=2, epoch=3, thread=12, verbose=0,
                minn=2, maxn=4, lr=0.02,
            )  # fmt: skip
            stored[f"{name}/file"] = data_of(model, path)
            words = model.get_words() + OUTSIDE
            stored[f"{name}/vectors"] = np.stack([model.get_word_vector(word) for word in words])
            raw = [model.f.getSubwords(word, "replace")[1] for word in RAW]
            stored[f"{name}/raw_ids"] = np.array([i for ids in raw for i in ids])
            sentences = [t.replace("\v", " ") for t in TEXTS]
            stored[f"{name}/sentences"] = np.stack(
                [model.get_sentence_vector(text) for text in sentences]
            )
            near = model.get_nearest_neighbors("red", 5)
            stored[f"{name}/neighbours"] = np.array([word for _, word in near])
            stored[f"{name}/similarities"] = np.array([score for score, _ in near])
            answers = model.get_analogies("red", "blue", "green", 3)
            stored[f"{name}/analogy"] = np.array([word for _, word in answers])
        write_text(text, labels=True)
        for name, arguments in SUPERVISED.items():
            model = fasttext.train_supervised(
                str(text), dim=5, epoch=4, lr=0.3, thread=12, verbose=0, **arguments
            )
            store_supervised(stored, name, model, path)
            if name in ("softmax", "hs"):
                model.quantize(
                    str(text), qnorm=name == "hs", cutoff=270 if name == "hs" else 0, verbose=0
                )
                store_supervised(stored, f"{name}_quantized", model, path)
    np.savez_compressed(Path(__file__).with_name("fasttext.npz"), **stored)


def store_supervised(stored, name, model, path):
    stored[f"{name}/file"] = data_of(model, path)
    labels = model.get_labels()
    table = np.zeros((len(TEXTS), len(labels)))
    for row, text in zip(table, TEXTS, strict=True):
        for probability, label in model.f.predict(text + "\n", -1, 0.0, "strict"):
            row[labels.index(label)] = probability
    stored[f"{name}/probabilities"] = table
    stored[f"{name}/sentences"] = np.stack([model.get_sentence_vector(text) for text in TEXTS])


if __name__ == "__main__":
    main()
