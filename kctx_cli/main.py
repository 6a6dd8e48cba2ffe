"""The entry point: which command, and how its errors are told."""

import inspect
import os
import signal
import sys

import tyro

from kctx_cli.convert import Convert
from kctx_cli.embed import Embed
from kctx_cli.export import Export
from kctx_cli.info import Info
from kctx_cli.predict import Predict

COMMANDS = {
    "info": Info,
    "predict": Predict,
    "embed": Embed,
    "export": Export,
    "convert": Convert,
}
USAGE = """usage: kctx COMMAND ...

Models of text: ask them, embed with them, serve them, convert them.

    kctx info runs/reviews/preset
    kctx predict runs/reviews/preset texts.txt > answers.jsonl
    kctx embed runs/bert/preset texts.txt --output vectors.npy
    kctx export runs/reviews/preset --name reviews
    kctx convert bert-base-uncased/ bert/

commands:
{commands}

kctx COMMAND --help tells the rest. The Keras backend is told by the environment variable
KERAS_BACKEND: tensorflow (the default), jax or torch.
"""


def main(arguments=None):
    """Runs `kctx`.

    Args:
        arguments: list of str. Default: those of the process.

    What the user can put right is said in one line, without the trace of calls, which
    `KCTX_TRACEBACK=1` brings back; exit status 2. Ctrl-C ends with status 130, a reader of the
    output that went away (`| head`) with 0, and SIGTERM, where this is a process of its own, with
    143.
    """
    if arguments is None:
        # As after Ctrl-C, what was begun is cleared away.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name, *others = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    try:
        if name in ("-h", "--help"):
            print(usage(), end="")
            return
        if name not in COMMANDS:
            print(f"kctx: no command {name!r}\n\n{usage()}", end="", file=sys.stderr)
            raise SystemExit(2)
        command = COMMANDS[name]
        description = inspect.cleandoc(command.__doc__)
        chosen = tyro.cli(command, prog=f"kctx {name}", description=description, args=others)
        chosen.run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush
    except (ValueError, TypeError, OSError, FloatingPointError, RuntimeError) as error:
        if os.environ.get("KCTX_TRACEBACK") == "1":
            raise
        message = f"error: {error}\n(KCTX_TRACEBACK=1 shows where it was raised.)"
        print(message, file=sys.stderr)
        raise SystemExit(2) from None


def usage():
    """What `kctx --help` says: each command with the first line of its description."""
    lines = [
        f"    {name:<10}{inspect.cleandoc(command.__doc__).splitlines()[0]}"
        for name, command in COMMANDS.items()
    ]
    return USAGE.format(commands="\n".join(lines))


if __name__ == "__main__":
    main()
