"""How alike two texts are, each encoded by itself."""

from kctx.heads.bi_encoder import SECOND
from kctx.tasks.field import Field
from kctx.tasks.task import Task


class Similarity(Task):
    """Pairs of texts to `score` float32 (B,), the cosine of their vectors."""

    name = "similarity"
    fields = {
        "text": Field("texts", "first texts, UTF-8, any length"),
        "text_b": Field("others", "second texts"),
    }
    meanings = {"score": ("(B,)", "how alike they are: the cosine of their vectors, -1 to 1")}

    @property
    def inputs(self):
        first = self.preprocessor.inputs
        second = {
            name + SECOND: made._replace(
                axes=tuple(x if x == "B" else x + SECOND for x in made.axes)
            )
            for name, made in first.items()
        }
        return {**first, **second}

    def signatures(self):
        return {"serving_default": ("text", "text_b")}

    def prepare(self, signature, text, text_b):
        first, second = self.preprocessor(text), self.preprocessor(text_b)
        return {**first, **{name + SECOND: value for name, value in second.items()}}, {}

    def answer(self, outputs, inputs, state):
        return {"score": outputs["output"][:, 0]}
