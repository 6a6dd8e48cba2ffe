"""Runs recipes as scripts: in this process, since starting Python anew takes most of the time."""

import contextlib
import io
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def command(recipe, *arguments):
    """The command line of a recipe in a process of its own."""
    return [sys.executable, *_words(recipe, arguments)]


def run(recipe, *arguments):
    """Runs a recipe to its end; returns what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        _run(recipe, arguments)
    return out.getvalue()


def refused(recipe, *arguments):
    """What a recipe says when it stops with an error in what the user gave."""
    with contextlib.redirect_stderr(io.StringIO()) as said, pytest.raises(SystemExit) as end:
        run(recipe, *arguments)
    if isinstance(end.value.code, str):  # a program that ends so prints it, and 1 is its status
        return end.value.code
    assert end.value.code == 2
    return said.getvalue()


def _words(recipe, arguments):
    return [str(ROOT / "recipes" / f"{recipe}.py"), *map(str, arguments)]


def _run(recipe, arguments):
    words = _words(recipe, arguments)
    with mock.patch.object(sys, "argv", words):
        runpy.run_path(words[0], run_name="__main__")
