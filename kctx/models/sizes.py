"""Models that come in the sizes of a paper."""


class HasSizes:
    """For models whose constructor arguments stand in a table of their paper."""

    # Name of a size -> constructor arguments: the paper's own table.
    SIZES = {}

    @classmethod
    def from_size(cls, size, **overrides):
        """Builds a size of the paper, randomly initialised.

        Args:
            size: str, a key of `SIZES`.
            **overrides: constructor arguments that replace those of the size.

        Raises:
            ValueError: no such size; the message lists them.
        """
        if size not in cls.SIZES:
            raise ValueError(f"`size` must be one of {', '.join(cls.SIZES)}. Received: {size!r}")
        return cls(**{**cls.SIZES[size], **overrides})
