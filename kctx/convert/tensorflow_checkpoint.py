"""Checkpoints of TensorFlow 1, as the original models were published."""

from pathlib import Path


class TensorFlowCheckpoint:
    """Reads variables by name, without a session or a graph.

    Args:
        prefix: `pathlib.Path`, such as `folder/bert_model.ckpt`.

    Attributes:
        shapes: dict: name -> tuple of int.

    Raises:
        ValueError: the files are not whole, or of the object-based format of TensorFlow 2.
    """

    file_format = "TensorFlow 1 checkpoint"
    layout = "tensorflow"

    def __init__(self, prefix):
        import tensorflow as tf

        self._prefix = prefix
        self._errors = (tf.errors.OpError, RuntimeError, ValueError, IndexError)
        try:
            self._reader = tf.train.load_checkpoint(str(prefix))
            shapes = self._reader.get_variable_to_shape_map()
        except self._errors as error:
            raise self._broken(error) from error
        if "_CHECKPOINTABLE_OBJECT_GRAPH" in shapes:
            raise ValueError(
                f"{prefix} is an object-based checkpoint of TensorFlow 2, whose names depend on "
                "the program that wrote it. Supported are TensorFlow 1 checkpoints, which name "
                "their variables."
            )
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}

    def read(self, name):
        """The variable called `name`, a numpy array."""
        try:
            return self._reader.get_tensor(name)
        except self._errors as error:
            raise self._broken(error, f" `{name}` in") from error

    def _broken(self, error, what=""):
        first = str(error).strip().split("\n")[0]
        return ValueError(
            f"Cannot read{what} the checkpoint {self._prefix}: {first}. Was it truncated, or is "
            "its .data or .index file missing?"
        )


def find_prefix(path):
    """The prefix of the TensorFlow checkpoint at `path`, or None.

    Args:
        path: `pathlib.Path`: a prefix (`folder/bert_model.ckpt`), one of the files of a checkpoint,
            or a folder that holds one; of several, the one that the file `checkpoint` names.

    Raises:
        ValueError: a folder holds several and none is named as the latest.
    """
    if path.name.endswith(".index") or ".data-" in path.name:
        path = path.with_name(path.name.rsplit(".", 1)[0])
    if path.name and path.with_name(path.name + ".index").is_file():
        return path
    if not path.is_dir():
        return None
    prefixes = [
        index.with_suffix("") for index in sorted(path.glob("*.index")) if index.suffix == ".index"
    ]
    if len(prefixes) > 1:
        latest = _latest_name(path / "checkpoint")
        prefixes = [prefix for prefix in prefixes if prefix.name == latest] or prefixes
    if len(prefixes) > 1:
        names = ", ".join(prefix.name for prefix in prefixes)
        raise ValueError(f"{path} holds several checkpoints; give the path of one: {names}")
    return prefixes[0] if prefixes else None


def _latest_name(path):
    """Name of the latest checkpoint in the file `checkpoint`, whose folder may have moved."""
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("model_checkpoint_path:"):
            return Path(line.split(":", 1)[1].strip().strip('"')).name
    return None
