"""The layers of a model from the lowest to the highest, for rates and for unfreezing."""

import re
from typing import NamedTuple

import keras

from kctx.arguments import check_number, check_pattern

_BLOCK = r"(?:^|/)block_(\d+)/"
_EMBEDDING = r"embedding"


class LayerGroup(NamedTuple):
    """Layers of one depth.

    Attributes:
        name: str, "embeddings", "block 0", ... or "head".
        variables: list of trainable variables.
    """

    name: str
    variables: list


def layer_groups(model, block=_BLOCK, embedding=_EMBEDDING):
    """The trainable variables of a model by depth, the lowest first.

    Args:
        model: Keras model, an encoder with a head or any other.
        block: regular expression that is found in the paths of a block's variables; its group is
            the number of the block. Default: "block_<number>/", as all encoders of kctx have.
        embedding: regular expression that is found in the paths of what lies below all blocks.
            Default: "embedding".

    Returns:
        list of `LayerGroup`: embeddings, the blocks in order, and all others, such as pooler and
        head. Groups without a variable are left out.

    Raises:
        ValueError: there is only one group, so nothing to tell apart.
    """
    check_pattern("block", block)
    check_pattern("embedding", embedding)
    if re.compile(block).groups < 1:
        raise ValueError(f"`block` must have a group for the number. Received: block={block!r}")
    groups = {}
    for variable in model.trainable_variables:
        if found := re.search(block, variable.path):
            key = (1, int(found[1]))
        else:
            key = (0, 0) if re.search(embedding, variable.path) else (2, 0)
        groups.setdefault(key, []).append(variable)
    if len(groups) < 2:
        raise ValueError(
            "`model` must have layers of different depth, known by the names of their variables "
            f"(`block`: {block!r}, `embedding`: {embedding!r}). Received: {model.name} with "
            f"{[variable.path for variable in model.trainable_variables][:5]}"
        )
    names = {0: "embeddings", 2: "head"}
    return [
        LayerGroup(names.get(kind, f"block {number}"), groups[kind, number])
        for kind, number in sorted(groups)
    ]


def layerwise_rates(model, decay=0.95, patterns=None, groups=None):
    """Factors of the learning rate that fall with depth, for `AdamW(rates=...)`.

    The head has 1, the highest block `decay`, the one below `decay`², and so on to the embeddings
    (Howard & Ruder, 2018, section 3.2, who have a decay of 1 / 2.6; Clark et al., 2020, appendix B,
    0.8 to 0.9).

    Args:
        model: Keras model; layers that must not be trained are to be made so before.
        decay: float in (0, 1], from each group of layers to the one below.
        patterns: dict of regular expression to float >= 0; the first that is found in the path of a
            variable takes the place of its factor. Default: none.
        groups: list of `LayerGroup`, lowest first. Default: `layer_groups(model)`.

    Returns:
        list of float, one for each of `model.trainable_variables`.

    Raises:
        ValueError: `decay` or a factor is out of range, or a pattern is none or found nowhere.
    """
    check_number("decay", decay, above=0, most=1)
    groups = layer_groups(model) if groups is None else groups
    factor_of = {
        id(variable): decay ** (len(groups) - 1 - depth)
        for depth, group in enumerate(groups)
        for variable in group.variables
    }
    variables = model.trainable_variables
    factors = [factor_of.get(id(variable), 1.0) for variable in variables]
    if patterns is not None and not isinstance(patterns, dict):
        raise ValueError(f"`patterns` must be a dict. Received: patterns={patterns!r}")
    for pattern, factor in reversed((patterns or {}).items()):
        check_pattern("patterns", pattern)
        check_number(f"patterns[{pattern!r}]", factor, least=0)
        places = [i for i, variable in enumerate(variables) if re.search(pattern, variable.path)]
        if not places:
            raise ValueError(
                f"`patterns` must be found in a variable's path. Received: {pattern!r}, which is "
                f"in none of {[variable.path for variable in variables][:5]} ..."
            )
        for place in places:
            factors[place] = float(factor)
    return factors


def plain_optimizer(model):
    """The optimizer of a compiled model, without the loss scaling around it."""
    optimizer = getattr(model, "optimizer", None)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(f"`model` must be compiled first. Received: {model.name}")
    return getattr(optimizer, "inner_optimizer", optimizer)
