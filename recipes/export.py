"""A preset folder to a SavedModel that answers raw text in stock TensorFlow Serving.

    python recipes/export.py --preset runs/reviews/preset --name reviews

writes `saved_models/reviews/1/` (2, 3, ... when it is there) and prints the command that serves it
and one that asks it. The preset may have been trained under any Keras backend. What it answers
depends on what it holds:

    a classifier       label, score and the scores of all labels for each text
    a regressor        a score for each text
    a masked-LM model  the best tokens for each [MASK] in the text
    an encoder         an embedding for each text

Takes about ten seconds and the time to write the weights twice; a CPU is enough.
"""

import dataclasses
from pathlib import Path
from typing import Literal

from kctx import command_line, export, presets
from kctx.export.documents import curl_line, docker_line
from kctx.tasks import task_of


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of an export."""

    preset: Path
    """preset folder, as training leaves it"""
    name: str | None = None
    """name under which it is served; default: the folder's, or the folder's above "preset" """
    saved_models: Path = Path("saved_models")
    """folder of all served models; this one goes to <saved_models>/<name>/<version>"""
    version: int | None = None
    """number of the version; default: one more than the greatest there"""
    task: Literal["classification", "regression", "masked_lm", "embedding"] | None = None
    """what is answered; default: what the preset says, or what the model's outputs tell"""
    weights_dtype: Literal["bfloat16"] | None = None
    """bfloat16 halves the file; answers change in about the third digit"""
    dtype: str | None = None
    """dtype policy of the arithmetic, for instance float32; default: as trained"""
    pooling: Literal["mean", "cls", "max", "pooled"] = "mean"
    """how an embedding is made from the vectors of the tokens"""
    top_k: int = 5
    """how many tokens are given for each [MASK]"""
    example: tuple[str, ...] = ()
    """texts for the warm-up and the example request, in the language of the model"""
    include_preset: bool = True
    """put the preset into the export, so that fine-tuning can go on from it"""


def main(config):
    folder = config.preset.resolve()
    name = config.name or (folder.parent.name if folder.name == "preset" else folder.name)
    print(f"Loading {config.preset}", flush=True)
    loaded = presets.load(config.preset)
    task = config.task or loaded.task or task_of(loaded.model)
    version = export.saved_model(
        loaded.model,
        loaded.preprocessor,
        config.saved_models / name,
        labels=loaded.labels if task == "classification" else None,
        task=task,
        weights_dtype=config.weights_dtype,
        dtype=config.dtype,
        name=name,
        version=config.version,
        pooling=config.pooling,
        top_k=config.top_k,
        examples=list(config.example) or None,
        include_preset=config.include_preset,
    )
    size = sum(file.stat().st_size for file in version.glob("variables/*"))
    print(f"Task: {task}. Weights: {size / 1e6:.1f} MB.")
    print("\nServe it:\n  " + docker_line(version.parent.resolve(), name))
    print("\nAsk it:\n  " + curl_line(version / "assets.extra" / "request_example.json", name))


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
