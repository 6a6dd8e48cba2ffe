"""Several objectives on one encoder pass."""

import keras

from kctx.objectives.objective import Objective


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
        return {
            key: value
            for objective in self.objectives
            for key, value in objective.extra_inputs().items()
        }

    def predict_from(self, inputs, encoded):
        return {
            key: value
            for objective in self.objectives
            for key, value in objective.predict_from(inputs, encoded).items()
        }

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
