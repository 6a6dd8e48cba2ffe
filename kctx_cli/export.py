"""kctx export"""

import dataclasses
from pathlib import Path
from typing import Literal

import tyro

from kctx_cli.requests import parsed_options


@dataclasses.dataclass(frozen=True)
class Export:
    """Makes a SavedModel that answers raw text in stock TensorFlow Serving.

        kctx export runs/reviews/preset --name reviews
        kctx export runs/bert/preset --embed cls --weights-dtype bfloat16

    Writes saved_models/NAME/1/ (2, 3, ... when it is there) and prints the command that serves it
    and one that asks it; README.md within tells what goes in and comes out. The preset may have
    been trained under any Keras backend. Takes about ten seconds and the time to write the weights
    twice; a CPU is enough.
    """

    preset: tyro.conf.Positional[Path]
    """preset folder, as training leaves it, or a folder in Hugging Face's format"""
    name: str | None = None
    """name under which it is served; default: the folder's, or the folder's above "preset" """
    saved_models: Path = Path("saved_models")
    """folder of all served models; this one goes to <saved_models>/<name>/<version>"""
    version: int | None = None
    """number of the version; default: one more than the greatest there"""
    task: (
        Literal[
            "classification",
            "regression",
            "tagging",
            "span",
            "multiple_choice",
            "similarity",
            "coreference",
            "masked_lm",
            "embedding",
        ]
        | None
    ) = None
    """what is answered; default: what the preset says, or what the model's outputs tell"""
    option: tuple[str, ...] = ()
    """options of the task, as name=value: stride=64, no_answer_threshold=null, split=characters"""
    embed: Literal["mean", "cls", "max", "pooled", "last4_mean", "last4_concat"] | None = None
    """add a signature "embed" that gives the encoder's vectors, pooled like this"""
    weights_dtype: Literal["bfloat16"] | None = None
    """bfloat16 halves the file; answers change in about the third digit"""
    dtype: str | None = None
    """dtype policy of the arithmetic, for instance float32; default: as trained"""
    pooling: Literal["mean", "cls", "max", "pooled", "last4_mean", "last4_concat"] | None = None
    """with the task embedding: how the vectors of a text's tokens become one; default: what the
    preset says, or the mean"""
    top_k: int | None = None
    """with the task masked_lm: how many tokens are given for each [MASK]; default: what the preset
    says, or 5"""
    example: tuple[str, ...] = ()
    """texts for the warm-up and the example request, in the language of the model"""
    include_preset: bool = True
    """put the preset into the export, so that fine-tuning can go on from it"""

    def run(self):
        from kctx import export
        from kctx.export.documents import curl_line, docker_line
        from kctx.tasks import task_of
        from kctx_cli.loading import load_text_model

        folder = self.preset.resolve()
        name = self.name or (folder.parent.name if folder.name == "preset" else folder.name)
        print(f"Loading {self.preset}", flush=True)
        loaded = load_text_model(self.preset)
        task = self.task or loaded.task or task_of(loaded.model)
        own = task == loaded.task
        version = export.saved_model(
            loaded.model,
            loaded.preprocessor,
            self.saved_models / name,
            labels=loaded.labels if own else None,
            task=task,
            options={**(loaded.options if own else {}), **parsed_options(self.option)},
            embed=self.embed,
            weights_dtype=self.weights_dtype,
            dtype=self.dtype,
            name=name,
            version=self.version,
            pooling=self.pooling,
            top_k=self.top_k,
            examples=list(self.example) or None,
            include_preset=self.include_preset,
        )
        size = sum(file.stat().st_size for file in version.glob("variables/*"))
        print(f"Task: {task}. Weights: {size / 1e6:.1f} MB.")
        print("\nServe it:\n  " + docker_line(version.parent.resolve(), name))
        request = version / "assets.extra" / "request_example.json"
        print("\nAsk it:\n  " + curl_line(request, name))
