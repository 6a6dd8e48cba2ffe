"""What streams share whose every batch follows from its number."""

import numpy as np


class StepStream:
    """A stream that goes on from any batch without a memory of those before it.

    A subclass makes its batches from `self.first_step` on, each from nothing but its number.
    """

    first_step = 0

    def state_at(self, step):
        """What a checkpoint must hold to go on after `step` batches."""
        return {"step": np.int64(step)}

    def restore(self, state):
        """Makes `dataset` begin after the batches of a state."""
        self.first_step = int(state["step"])
