"""Small checkpoint folders for the tests of `kctx.convert`, made of random numbers."""

import json

import numpy as np
from safetensors.numpy import save_file

CONFIG = {
    "model_type": "bert",
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
    "type_vocab_size": 3,
    "hidden_act": "gelu",
}


def dense(name, inputs, outputs):
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def norm(name, width=8):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def encoder_shapes(pooler=True, layers=2):
    """Names and shapes written down by hand, not from the table under test."""
    shapes = {
        "bert.embeddings.word_embeddings.weight": (30, 8),
        "bert.embeddings.position_embeddings.weight": (12, 8),
        "bert.embeddings.token_type_embeddings.weight": (3, 8),
        **norm("bert.embeddings.LayerNorm"),
    }
    for index in range(layers):
        layer = f"bert.encoder.layer.{index}"
        for name in ("query", "key", "value"):
            shapes |= dense(f"{layer}.attention.self.{name}", 8, 8)
        shapes |= dense(f"{layer}.attention.output.dense", 8, 8)
        shapes |= norm(f"{layer}.attention.output.LayerNorm")
        shapes |= dense(f"{layer}.intermediate.dense", 8, 16)
        shapes |= dense(f"{layer}.output.dense", 16, 8)
        shapes |= norm(f"{layer}.output.LayerNorm")
    if pooler:
        shapes |= dense("bert.pooler.dense", 8, 8)
    return shapes


MASKED_LM_SHAPES = {
    **dense("cls.predictions.transform.dense", 8, 8),
    **norm("cls.predictions.transform.LayerNorm"),
    "cls.predictions.bias": (30,),
}
NEXT_SENTENCE_SHAPES = dense("cls.seq_relationship", 8, 2)
CLASSIFIER_SHAPES = dense("classifier", 8, 3)


def tensors_of(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def write_folder(folder, tensors, config=CONFIG):
    """A Hugging Face folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the a good bad film was".split()]


def write_vocabulary(folder, vocabulary=VOCABULARY):
    (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in vocabulary), encoding="utf-8")
    return folder
