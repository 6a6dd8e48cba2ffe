"""Linear-chain conditional random field as a layer, see `kctx.layers.tag_chains`."""

import keras
from keras import ops

from kctx.arguments import check_count
from kctx.layers.id_check import check_ids
from kctx.layers.tag_chains import (
    check_allowed,
    leading_steps,
    log_partition,
    marginals,
    path_score,
    viterbi,
)


@keras.saving.register_keras_serializable("kctx")
class CRF(keras.layers.Layer):
    """Scores whole sequences of tags, by emissions and by which tag follows which.

    score(y) = start[y_1] + sum_t x[t, y_t] + sum_t transitions[y_t, y_{t+1}] + end[y_last]

    Rules of `allowed` act in `decode` alone: the probabilities are over all sequences.

    Args:
        num_tags: int, C.
        allowed: (C + 1, C + 1) bools, of `kctx.layers.tag_transitions`. Default: all may follow
            all.

    Call arguments:
        emissions: (B, W, C)
        step_mask: bool (B, W), True = a real step; real ones come first. Default: all are real.

    Returns:
        float32 (B, W, C), the probability of each tag at each step; 0 at padding. See
        `log_likelihood` for training and `decode` for the best tags.
    """

    def __init__(self, num_tags, allowed=None, **kwargs):
        # Weights are read in float32 under any policy.
        super().__init__(autocast=False, **kwargs)
        check_count("num_tags", num_tags)
        self.num_tags = num_tags
        self.allowed = check_allowed(allowed, num_tags)

    def build(self, emissions_shape=None, step_mask_shape=None):
        if emissions_shape is not None and emissions_shape[-1] not in (None, self.num_tags):
            raise ValueError(
                f"`emissions` must have {self.num_tags} values for each step, one for each tag. "
                f"Received: {emissions_shape[-1]}"
            )

        def add(name, *shape):
            initializer = keras.initializers.RandomUniform(-0.1, 0.1)
            return self.add_weight(shape=shape, initializer=initializer, dtype="float32", name=name)

        self.transitions = add("transitions", self.num_tags, self.num_tags)
        self.start = add("start", self.num_tags)
        self.end = add("end", self.num_tags)

    def log_likelihood(self, emissions, tags, mask=None):
        """log p(tags | emissions).

        Args:
            emissions: (B, W, C). tags: int (B, W), whatever at padding. mask: bool (B, W).

        Returns:
            float32 (B,); 0 for a row without real steps
        """
        mask = _real_steps(mask, emissions)
        weights = self._weights()
        tags = ops.where(mask, ops.cast(tags, "int32"), 0)
        tags = check_ids("tags", tags, self.num_tags, "transition")
        score = path_score(emissions, tags, mask, *weights)
        return score - log_partition(emissions, mask, *weights)

    def decode(self, emissions, mask=None):
        """The best tags and their score: see `viterbi`.

        Args:
            emissions: (B, W, C). mask: bool (B, W).

        Returns:
            int32 (B, W), 0 at padding; float32 (B,)
        """
        mask = _real_steps(mask, emissions)
        return viterbi(emissions, mask, *self._weights(), allowed=self.allowed)

    def call(self, emissions, step_mask=None):
        mask = _real_steps(step_mask, emissions)
        return marginals(emissions, mask, *self._weights())

    def compute_output_spec(self, emissions, step_mask=None):
        return keras.KerasTensor(emissions.shape, "float32")

    def _weights(self):
        if not self.built:
            self.build()
        weights = (self.transitions, self.start, self.end)
        return tuple(ops.cast(ops.convert_to_tensor(weight), "float32") for weight in weights)

    def get_config(self):
        config = super().get_config()
        config.pop("autocast", None)
        return {**config, "num_tags": self.num_tags, "allowed": self.allowed}


def _real_steps(mask, emissions):
    if mask is None:
        return ops.ones(ops.shape(emissions)[:2], dtype="bool")
    return leading_steps(mask)
