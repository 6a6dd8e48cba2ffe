"""AdamW's step in the fused kernels of TensorFlow and torch."""

from keras import ops


def tensorflow_update(optimizer, grads, variables, learning_rate):
    """One step with TensorFlow's fused Adam kernel: moments and update in one pass."""
    import tensorflow as tf

    if optimizer.clip_norm is not None:
        norm = tf.linalg.global_norm(grads)
        scale = optimizer.clip_norm / tf.maximum(norm, optimizer.clip_norm)
        grads = [grad * scale for grad in grads]
    correction_1, correction_2 = optimizer.corrections("float32")
    for grad, variable in zip(grads, variables, strict=True):
        momentum, velocity = optimizer.moments_of(variable)
        # With a rate of 0 and decay rates of 1 the kernel changes nothing.
        active = optimizer.is_active(variable)
        rate = learning_rate * (optimizer.factor_of(variable) * active)
        if optimizer.decays(variable):
            variable.value.assign(variable.value * (1.0 - rate * optimizer.decay))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle,
            m=momentum.value.handle,
            v=velocity.value.handle,
            beta1_power=1.0 - correction_1,
            beta2_power=1.0 - correction_2,
            lr=rate,
            beta1=1.0 - (1.0 - optimizer.beta_1) * active,
            beta2=1.0 - (1.0 - optimizer.beta_2) * active,
            # The kernel adds epsilon to the uncorrected root.
            epsilon=optimizer.epsilon * ops.sqrt(correction_2),
            grad=grad,
        )


def torch_update(optimizer, grads, variables, learning_rate):
    """One step with torch's fused AdamW kernel: clipping, decay, moments, update in one pass."""
    import torch

    device = variables[0].value.device
    # The kernel divides each gradient by this scale, in place.
    divisor = None
    if optimizer.clip_norm is not None:
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        divisor = torch.clamp(norm / optimizer.clip_norm, min=1.0)
    # At a huge step both bias corrections are 1.
    step = optimizer.iterations.value + 1 if optimizer.bias_correction else 1e9
    step = torch.as_tensor(step, dtype=torch.float32, device=device)
    groups = {}
    for grad, variable in zip(grads, variables, strict=True):
        # One that is switched off is left alone.
        if not optimizer.freezable or optimizer.is_active(variable) > 0:
            kind = (optimizer.decays(variable), optimizer.factor_of(variable))
            tensors = (variable.value, grad.contiguous(), *optimizer.moments_of(variable))
            groups.setdefault(kind, []).append(tensors)
    for (decayed, factor), group in groups.items():
        values, group_grads, momentums, velocities = zip(*group, strict=True)
        torch._fused_adamw_(
            [value.detach() for value in values],
            list(group_grads),
            [momentum.value for momentum in momentums],
            [velocity.value for velocity in velocities],
            [],
            [step] * len(group),
            lr=learning_rate * factor,
            beta1=optimizer.beta_1,
            beta2=optimizer.beta_2,
            weight_decay=optimizer.decay if decayed else 0.0,
            eps=optimizer.epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=divisor,
        )


FUSED_UPDATES = {"tensorflow": tensorflow_update, "torch": torch_update}
