"""What a task must say of itself to be fine-tuned by `kctx.finetuning.run`."""

import dataclasses
import hashlib
import json


class FineTuning:
    """Base of what a recipe defines: examples, model, and how answers are scored and shown.

    A subclass reads its examples when it is made, and defines all methods below but those that
    have a default.

    Attributes:
        dev: dataclass of `kctx.data`, the examples that epochs are compared on.
        task: str, a key of `kctx.tasks.TASKS`.
        labels: list of str, names of classes or tags, where the task has some.
        task_options: dict, options of the task that belong into the preset.
        needs_pairs: bool, whether the preprocessor must take two texts.
        class_weights: list of float, the weight of each label in the loss, or None.
    """

    task = None
    dev = None
    labels = None
    task_options = {}
    needs_pairs = False
    class_weights = None

    def describe(self):
        """str, what will be trained on."""
        raise NotImplementedError

    def model(self, encoder):
        """The encoder with a new head, of `kctx.heads`."""
        raise NotImplementedError

    def stream(self, preprocessor, seed):
        """Training batches: a stream of `kctx.data` with `dataset()` and `steps_per_epoch`."""
        raise NotImplementedError

    def answers(self, text_model):
        """list of dict, what `text_model.predict` says of each dev example."""
        raise NotImplementedError

    def metrics(self, answers):
        """dict of float, higher is better; the first one chooses the best epoch."""
        raise NotImplementedError

    def baseline(self):
        """(name, dict of metrics) of something that needs no training."""
        raise NotImplementedError

    def rows(self, answers):
        """Yields a dict for each dev example: the request, "gold", and the answer."""
        raise NotImplementedError

    def plot(self, answers, folder):
        """Draws a PNG into the folder."""
        raise NotImplementedError

    def fingerprint(self):
        """dict, what must be equal for a run to be resumed, beside its model and its batches."""
        dev = json.dumps(dataclasses.asdict(self.dev), sort_keys=True)
        return {
            "class_weights": self.class_weights,
            "dev": hashlib.sha256(dev.encode()).hexdigest(),
            "task_options": self.task_options,
        }

    def remark(self, answers):
        """str, something that the user should know of the answers; None otherwise."""
        return None
