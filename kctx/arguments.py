"""Checks of arguments that every folder makes."""

import math
import numbers
import re


def check_choice(argument, value, known):
    """Raises a `ValueError` unless an argument is one of the known values."""
    if value not in known:
        raise ValueError(f"`{argument}` must be one of {known}. Received: {argument}={value!r}")


def is_integer(value):
    """Whether it is an integer, one of NumPy too; bool is none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_count(argument, value, least=1):
    """Raises a `ValueError` unless an argument is an integer of at least `least`; bool is none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"`{argument}` must be an integer of at least {least}. Received: {argument}={value!r}"
        )


def check_number(argument, value, above=None, least=None, most=None):
    """Raises a `ValueError` unless an argument is a finite number within bounds; bool is none."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if (
        not is_number
        or not math.isfinite(value)
        or (above is not None and not value > above)
        or (least is not None and not value >= least)
        or (most is not None and not value <= most)
    ):
        bounds = [("above", above), ("at least", least), ("at most", most)]
        shown = ", ".join(f"{name} {bound}" for name, bound in bounds if bound is not None)
        raise ValueError(
            f"`{argument}` must be {shown or 'a finite number'}. Received: {argument}={value!r}"
        )


def check_pattern(argument, value):
    """Raises a `ValueError` unless an argument is a regular expression."""
    try:
        re.compile(value)
    except (re.error, TypeError) as error:
        raise ValueError(
            f"`{argument}` must be a regular expression ({error}). Received: {argument}={value!r}"
        ) from error
