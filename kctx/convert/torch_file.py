"""State dicts of PyTorch, `pytorch_model.bin`."""


class TorchCheckpoint:
    """Reads tensors from `.bin` files, refusing whatever is not plain tensors.

    Needs PyTorch, which is imported here only. Files are memory-mapped where their format allows
    it, so that one tensor at a time is copied.

    Args:
        paths: list of `pathlib.Path`.

    Attributes:
        shapes: dict: name -> tuple of int.

    Raises:
        ImportError: PyTorch is not installed.
        ValueError: a file is truncated, or holds anything but tensors.
    """

    file_format = "Hugging Face pytorch_model.bin"
    layout = "huggingface"

    def __init__(self, paths):
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"Reading {paths[0]} needs PyTorch: install kctx[torch], or convert the "
                "checkpoint to safetensors."
            ) from error

        self._tensors = {}
        for path in paths:
            try:
                try:
                    state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
                except RuntimeError:  # the format before PyTorch 1.6, or not whole
                    state = torch.load(path, map_location="cpu", weights_only=True)
            except Exception as error:  # pickle, zip and PyTorch raise a dozen kinds
                first = str(error).strip().split("\n")[0]
                raise ValueError(
                    f"{path} is not a whole state dict of plain tensors: {first} "
                    "Was it truncated? Anything but tensors is refused, since it could run code."
                ) from error
            if not isinstance(state, dict):
                raise ValueError(f"{path} must hold a state dict. Received: {type(state).__name__}")
            for name, tensor in state.items():
                if not torch.is_tensor(tensor):
                    continue
                plain = isinstance(name, str) and tensor.layout == torch.strided
                if not plain or tensor.is_complex() or tensor.device.type != "cpu":
                    raise ValueError(
                        f"{path} must hold plain dense tensors under names. "
                        f"Received: {name!r}, {tensor.dtype} {tensor.layout} {tensor.device}"
                    )
                self._tensors[name] = tensor.detach()
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def read(self, name):
        """The tensor called `name`, a numpy array."""
        tensor = self._tensors[name]
        # numpy has no bfloat16 of its own
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
