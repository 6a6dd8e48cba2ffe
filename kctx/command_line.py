"""Runs a recipe from the command line."""

import os
import sys

import tyro


def run(main, config_class, description):
    """Parses the options, runs the recipe, and says in one line what the user can put right.

    Args:
        main: function of a configuration.
        config_class: dataclass whose fields are the options and whose docstrings explain them.
        description: str, shown by `--help`.

    An error in what the user gave (`ValueError`, `OSError`, a loss that is not finite) is printed
    without the trace of calls, which `KCTX_TRACEBACK=1` brings back; exit status 2. Ctrl-C ends
    with status 130, as shells expect.
    """
    config = tyro.cli(config_class, description=description)
    try:
        main(config)
    except KeyboardInterrupt:
        print(
            "\nInterrupted. What was saved stays; a run with checkpoints goes on from the last one "
            "with --resume.",
            file=sys.stderr,
        )
        raise SystemExit(130) from None
    except (ValueError, OSError, FloatingPointError) as error:
        if os.environ.get("KCTX_TRACEBACK") == "1":
            raise
        print(
            f"error: {error}\n(KCTX_TRACEBACK=1 shows where it was raised.)",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
