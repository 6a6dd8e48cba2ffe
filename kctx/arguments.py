"""Checks of arguments that every folder makes."""


def check_choice(argument, value, known):
    """Raises a `ValueError` unless an argument is one of the known values."""
    if value not in known:
        raise ValueError(f"`{argument}` must be one of {known}. Received: {argument}={value!r}")


def check_count(argument, value, least=1):
    """Raises a `ValueError` unless an argument is an integer of at least `least`; bool is none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"`{argument}` must be an integer of at least {least}. Received: {argument}={value!r}"
        )
