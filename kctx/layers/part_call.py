"""Calling the parts of a layer."""

import keras

# Attributes of a layer that `Layer.__call__` acts upon, empty or None in a plain one. The last four
# exist under torch.
_WATCHED = (
    "activity_regularizer",
    "quantization_mode",
    "_remat_mode",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def call_part(whole, part, x, **arguments):
    """part(x, **arguments) from within the call of the layer that `part` belongs to.

    `Layer.__call__` converts inputs, opens scopes of names and of autocasting and looks for
    masks: 0.3 ms under eager torch, as much as a product of 256 x 384 x 384. The call of `whole`
    has done all of it. So `part.call` is called, unless there is something that it has not done:
    `part` is not built, has another dtype policy, is quantized, rematerialised or watched by hooks
    of torch, or has an activity regulariser, or work is distributed over devices.

    Args:
        whole: keras.layers.Layer, the one that is being called.
        part: keras.layers.Layer.
        x: tensor of the dtype that `whole` computes in.
        **arguments: of `part.call`. `training` is not filled in from `whole`, so it has to be
            given where the part takes it.

    Returns:
        what `part` gives.
    """
    plain = (
        part.built
        and part.dtype_policy is whole.dtype_policy
        and not isinstance(x, keras.KerasTensor)
        and keras.distribution.distribution() is None
        and not any(getattr(part, name, None) for name in _WATCHED)
    )
    return (part.call if plain else part)(x, **arguments)
