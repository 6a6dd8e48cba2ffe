"""The safetensors format: one or several files, read and written a tensor at a time."""

import json
import struct

from safetensors import SafetensorError, safe_open

DTYPES = {"float32": "F32", "float16": "F16"}


class SafetensorsCheckpoint:
    """Reads tensors from one safetensors file, or from the shards that an index names.

    The library checks the length of the header and every extent against the size of the file before
    it allocates anything.

    Args:
        paths: list of `pathlib.Path`.

    Attributes:
        shapes: dict: name -> tuple of int.

    Raises:
        ValueError: a file is truncated or is no safetensors file.
    """

    file_format = "Hugging Face safetensors"
    layout = "huggingface"

    def __init__(self, paths):
        self.shapes, self._files = {}, {}
        for path in paths:
            try:
                file = safe_open(path, framework="numpy")
            except SafetensorError as error:
                raise ValueError(
                    f"{path} is not a whole safetensors file: {error}. Was it truncated?"
                ) from error
            for name in file.keys():  # noqa: SIM118, not a dict
                self.shapes[name] = tuple(file.get_slice(name).get_shape())
                self._files[name] = file

    def read(self, name):
        """The tensor called `name`, a numpy array."""
        try:
            return self._files[name].get_tensor(name)
        except (AttributeError, TypeError) as error:  # float8, which NumPy does not have
            kind = self._files[name].get_slice(name).get_dtype()
            raise ValueError(f"The tensor {name!r} has a type that is not read: {kind}") from error


def write_safetensors(path, tensors, dtype="float32"):
    """Writes a safetensors file, holding one tensor at a time in memory.

    Args:
        path: str or `pathlib.Path`.
        tensors: dict: name -> (shape, function without arguments that gives a numpy array).
        dtype: "float32" or "float16". Default "float32".
    """
    width = {"float32": 4, "float16": 2}[dtype]
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, _) in tensors.items():
        start, end = end, end + width * _size(shape)
        header[name] = {
            "dtype": DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [start, end],
        }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # tensors begin at a multiple of 8
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for name, (shape, read) in tensors.items():
            array = read().astype(dtype).astype(f"<f{width}", order="C", copy=False)
            if array.shape != tuple(shape):
                raise ValueError(f"`{name}` must have shape {shape}. Received: {array.shape}")
            file.write(array.tobytes())


def _size(shape):
    size = 1
    for dimension in shape:
        size *= dimension
    return size
