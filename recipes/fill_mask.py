"""Fills the [MASK]s of a text with a pretrained masked-LM model.

    python recipes/fill_mask.py --preset runs/bert/pretraining --text "The [MASK] sat on the mat."

The preset is the pretraining/ folder of a run of pretrain_bert.py, or a published checkpoint with a
masked-LM head (Hugging Face or original TF1).
"""

import dataclasses
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from kctx import command_line, convert
from kctx.tasks import task_of


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of filling masks."""

    preset: Path
    """folder of a model with a masked-LM head"""
    text: str
    """text with one or several [MASK]"""
    top: int = 5
    """guesses for each [MASK]"""


def fill(text_model, text, top):
    """For each [MASK], the `top` tokens and their probabilities."""
    model = text_model.model
    # In this text, which is ours, [MASK] is meant as the token.
    tokenizer = text_model.preprocessor.tokenizer.with_options(special_tokens_in_text=True)
    size = tokenizer.vocabulary_size
    if not 1 <= top <= size:
        raise SystemExit(
            f"--top must lie between 1 and the vocabulary's {size} entries. Received: {top}"
        )
    preprocessor = text_model.preprocessor.with_options(tokenizer=tokenizer)
    inputs = {name: np.asarray(value) for name, value in preprocessor([text]).items()}
    places = np.flatnonzero(inputs["token_ids"][0] == tokenizer.mask_id)
    if not len(places):
        raise SystemExit(f"--text must hold a {tokenizer.mask_token}. Received: {text!r}")
    inputs["mask_positions"] = places[None].astype("int32")
    logits = np.asarray(model.predict_on_batch(inputs)["masked_lm"][0], "float64")
    logits = logits[:, :size]  # (M, V), the tables of a model may have more rows
    scores = np.exp(logits - logits.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    best = np.argsort(-scores, axis=-1)[:, :top]
    return [
        [(tokenizer.id_to_token(index), score[index]) for index in row]
        for row, score in zip(best, scores, strict=True)
    ]


def main(config):
    text_model, _ = convert.load_preset(config.preset)
    if task_of(text_model.model) != "masked_lm":
        raise ValueError(
            "--preset has no masked-LM head: give the pretraining/ folder of a run. "
            f"Received: {config.preset}"
        )
    table = Table(title=config.text)
    table.add_column("[MASK]", justify="right")
    for rank in range(config.top):
        table.add_column(f"guess {rank + 1}")
    for number, row in enumerate(fill(text_model, config.text, config.top)):
        table.add_row(str(number + 1), *(f"{token} {score:.2f}" for token, score in row))
    Console(markup=False).print(table)


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
