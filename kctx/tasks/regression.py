"""One number for each text, or pair of texts."""

from kctx.heads import head_of
from kctx.tasks.classification import width_of_output
from kctx.tasks.task import Task


class Regression(Task):
    """The output (B, 1) to `score` float32 (B,)."""

    name = "regression"
    defaults = {"pairs": False}  # whether the model was taught on pairs, and asks for them
    meanings = {"score": ("(B,)", "the predicted number")}

    @classmethod
    def tells(cls, model):
        """Whether the head is a `Regressor`, or a `Classifier` of one class."""
        head = head_of(model)
        if head is None:
            return False
        return head.task == cls.name or (head.task == "classification" and head.num_classes == 1)

    @classmethod
    def check_labels(cls, model, labels):
        num_outputs = width_of_output(model, cls.name)
        if labels is not None:
            raise ValueError(
                f"`labels` belong to classification and tagging only. Received: {labels}"
            )
        if num_outputs != 1:
            raise ValueError(f"`model` must have 1 output for regression. Received: {num_outputs}")

    def answer(self, outputs, inputs, state):
        return {"score": outputs["output"][:, 0]}
