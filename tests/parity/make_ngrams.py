"""Makes ngrams.npz: models that KenLM's `lmplz` estimates, and what its `query` says with them.

    python tests/parity/make_ngrams.py LMPLZ QUERY      (paths of the programs of KenLM)

The text is made here: a little grammar drawn with a fixed seed, some hundred sentences, so that
nothing of others is stored. Each model is stored as lmplz wrote it, packed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Name -> (order, options of lmplz).
MODELS = {
    "plain": (4, []),
    "pruned": (3, ["--prune", "0", "1", "2"]),
    "pruned_words": (3, ["--prune", "1", "1", "3"]),
    "unknown_mass": (2, ["--interpolate_unigrams", "0"]),
    "padded": (2, ["--vocab_pad", "1000"]),
    "unigrams": (1, []),
    "six": (6, []),
}
SUBJECTS = "dog cat fox hen owl bee ant elk eel emu größe мышь 狐".split()
VERBS = "sees bites hears finds fears lifts sniffs follows ignores wakes".split()
PLACES = "here there outside upstairs nearby home abroad below\x0b".split(" ")
RARE = [f"w{n}" for n in range(40)]


def make_text(seed, sentences):
    """Sentences with a long tail of words, some of them empty."""
    rng = np.random.default_rng(seed)

    def pick(words):
        return words[min(int(rng.exponential(len(words) / 4)), len(words) - 1)]

    lines = []
    for _ in range(sentences):
        words = ["the", pick(SUBJECTS), pick(VERBS), "the", pick(SUBJECTS)]
        if rng.random() < 0.3:
            words += ["and", "the", pick(SUBJECTS), pick(VERBS), pick(PLACES)]
        if rng.random() < 0.2:
            words.insert(int(rng.integers(len(words))), pick(RARE))
        if rng.random() < 0.02:
            words = []
        lines.append(" ".join(words))
    return lines


# The last word in order of appearance comes three times, after one word: lmplz counts it apart.
TRAIN = [*make_text(0, 400), *["the last"] * 3]
TEST = [*make_text(1, 40), "an unheard of word", "w39 w0 zzz the dog"]


def ask(query, what, arpa, labels, column):
    """Numbers in the lines of an answer that begin with the labels, label by label."""
    answer = subprocess.run(
        [query, "-v", what, str(arpa)],
        input="".join(line + "\n" for line in TEST).encode(),
        check=True,
        capture_output=True,
    )
    lines = answer.stdout.decode().splitlines()
    return np.array(
        [float(x.split()[column]) for label in labels for x in lines if x.startswith(label)]
    )


def main():
    lmplz, query = sys.argv[1:]
    stored = {}
    with tempfile.TemporaryDirectory() as folder:
        text, arpa = Path(folder, "text"), Path(folder, "arpa")
        text.write_text("".join(line + "\n" for line in TRAIN), encoding="utf-8")
        for name, (order, options) in MODELS.items():
            command = [lmplz, "-o", str(order), "-S", "100M", "--discount_fallback", *options]
            command += ["--text", str(text), "--arpa", str(arpa)]
            subprocess.run(command, check=True, capture_output=True)
            stored[f"{name}_arpa"] = np.frombuffer(arpa.read_bytes(), np.uint8)
            if order == 1:
                continue  # which `query` does not read
            totals = ask(query, "sentence", arpa, ["Total:"], column=1)
            labels = ["Perplexity including", "Perplexity excluding", "OOVs:", "Tokens:"]
            summary = ask(query, "summary", arpa, labels, column=-1)
            stored[f"{name}_totals"], stored[f"{name}_summary"] = totals, summary
    np.savez_compressed(Path(__file__).with_name("ngrams.npz"), **stored)


if __name__ == "__main__":
    main()
