"""Training from the head downwards, one group of layers after the other."""

from kctx.arguments import check_count
from kctx.training.layer_groups import layer_groups, plain_optimizer
from kctx.training.optimizers import AdamW
from kctx.training.step_callback import StepCallback


class GradualUnfreezing(StepCallback):
    """Trains the head alone first, then also the group of layers below it, and so on.

    Layers that are still frozen keep their values bit for bit, weight decay included; those that
    train already keep their moments. Nothing is compiled anew (Howard & Ruder, 2018, section 3.3).

    Make it after `model.compile` with an `AdamW` and before the first step or a resume, and give it
    to `fit_steps`. A resumed run goes on as an unbroken one.

    Args:
        model: compiled Keras model.
        every: int >= 1, steps after which one more group is trained; the paper's choice is an
            epoch.
        first: int >= 1, how many groups are trained from the start. Default 1, the head.
        at_once: int >= 1, how many groups are added each time. Default 1.
        groups: list of `LayerGroup`, lowest first. Default: `layer_groups(model)`.

    Adds the number of groups that are trained to the logs, as `trained_groups`.

    Raises:
        ValueError: the optimizer is no `AdamW`, or is built already.
    """

    def __init__(self, model, every, first=1, at_once=1, groups=None):
        super().__init__()
        for name, value in (("every", every), ("first", first), ("at_once", at_once)):
            check_count(name, value)
        self.optimizer = plain_optimizer(model)
        if not isinstance(self.optimizer, AdamW):
            raise ValueError(
                "`model` must be compiled with `kctx.training.AdamW`. "
                f"Received: {type(self.optimizer).__name__}"
            )
        self.every, self.first, self.at_once = every, first, at_once
        self.groups = layer_groups(model) if groups is None else list(groups)
        depth_of = {
            id(variable): depth
            for depth, group in enumerate(self.groups)
            for variable in group.variables
        }
        # What is in no group counts as the head.
        top = len(self.groups) - 1
        self._depths = [depth_of.get(id(variable), top) for variable in model.trainable_variables]
        self.optimizer.make_freezable()
        self._trained = None

    def trained_at(self, step):
        """int, how many groups, from the head downwards, are trained in batch number `step`."""
        return min(self.first + step // self.every * self.at_once, len(self.groups))

    def on_train_begin(self, logs=None):
        self._trained = None

    def on_train_batch_begin(self, batch, logs=None):
        trained = self.trained_at(self._epoch_start + batch)
        if trained != self._trained:
            self.sync()
            if not self.model.optimizer.built:
                self.model.optimizer.build(self.model.trainable_variables)
            lowest = len(self.groups) - trained
            self.optimizer.set_active([depth >= lowest for depth in self._depths])
            self._trained = trained

    def on_step(self, logs):
        logs["trained_groups"] = self._trained

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            self.on_step(logs)

    def fingerprint(self):
        """What must be the same on resume."""
        return {
            "every": self.every,
            "first": self.first,
            "at_once": self.at_once,
            "depths": self._depths,
        }
