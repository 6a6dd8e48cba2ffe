"""Several objectives on one encoder pass."""

import keras

from kctx.layers import GatherPositions
from kctx.objectives.objective import Objective


def merged(dicts):
    """One dict of several."""
    return {key: value for one in dicts for key, value in one.items()}


@keras.saving.register_keras_serializable("kctx")
class Joint(Objective):
    """Trains several objectives together; the total loss is their sum.

    Example:
        model = Joint([MaskedLM(encoder), NextSentence(encoder)])

    Args:
        objectives: list of objectives on the very same encoder, with different outputs.

    Inputs and outputs: the unions of theirs.
    """

    def __init__(self, objectives, name="joint", **kwargs):
        encoders = {id(objective.encoder) for objective in objectives}
        if len(encoders) != 1:
            raise ValueError(
                "`objectives` must be at least one and share one encoder. "
                f"Received: {len(objectives)} objectives on {len(encoders)} encoders"
            )
        names = [name for objective in objectives for name in objective.output]
        if len(set(names)) < len(names):
            raise ValueError(f"`objectives` must have different outputs. Received: {names}")
        self.objectives = list(objectives)
        super().__init__(objectives[0].encoder, name=name, **kwargs)

    def extra_inputs(self):
        return merged(objective.extra_inputs() for objective in self.objectives)

    def check_inputs(self, inputs):
        for objective in self.objectives:
            objective.check_inputs(inputs)

    def needed_positions(self, inputs):
        wanted = [objective.needed_positions(inputs) for objective in self.objectives]
        wanted = [positions for positions in wanted if not isinstance(positions, str)]
        if len(wanted) > 1:
            return None  # each then takes its own
        return wanted[0] if wanted else "cls"

    def predict_from(self, inputs, encoded):
        together = self.needed_positions(inputs)
        outputs = []
        for objective in self.objectives:
            own = objective.needed_positions(inputs)
            view = encoded
            if isinstance(own, str) and together is not None:
                # Rows for another objective, among which the first need not be.
                view = {name: x for name, x in encoded.items() if name != "sequence_output"}
            elif own is not None and not isinstance(own, str) and together is None:
                rows = GatherPositions()(encoded["sequence_output"], own)
                view = {**encoded, "sequence_output": rows}
            outputs.append(objective.predict_from(inputs, view))
        return merged(outputs)

    def output_losses(self):
        return merged(objective.output_losses() for objective in self.objectives)

    def output_metrics(self):
        return merged(objective.output_metrics() for objective in self.objectives)

    def get_config(self):
        # Each objective's own configuration, without its copy of the encoder they share.
        objectives = []
        for objective in self.objectives:
            config = objective.get_config()
            del config["encoder"]
            registered = keras.saving.get_registered_name(type(objective))
            objectives.append({"registered_name": registered, "config": config})
        return {**super().get_config(), "objectives": objectives}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = keras.saving.deserialize_keras_object(
            config["encoder"], custom_objects=custom_objects
        )
        objectives = []
        for entry in config["objectives"]:
            objective = keras.saving.get_registered_object(
                entry["registered_name"], custom_objects=custom_objects
            )
            if objective is None:
                raise ValueError(
                    f"Objective {entry['registered_name']!r} is not registered; "
                    "import the module that defines it first."
                )
            objectives.append(objective(encoder, **entry["config"]))
        return cls(objectives, name=config["name"])
