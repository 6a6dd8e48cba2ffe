"""Compares candidates in turn on one machine: each in a process of its own, round after round.

A machine that others use too, or that changes its clock, makes single times worthless. So every
round times each candidate once, in an order that turns with the round, and what is reported are
medians, minima and the median of the rounds' ratios. Beside them stands the ceiling: the rate of
plain matrix products that the same process reaches with the same framework and precision.

A benchmark is a script with a function `make(candidate) -> object` whose public methods are called
by name from the parent: `Worker(script, candidate).ask("method", argument=value)`. It ends with
`if "--serve" in sys.argv: runner.serve(make)`.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback


class Worker:
    """A child process that holds one candidate and answers one request at a time.

    Args:
        script: path of the benchmark, run with `--serve` and the candidate as JSON.
        candidate: dict of plain values, handed to the script's `make`.
        environment: dict, added to the environment of the child.
    """

    def __init__(self, script, candidate, environment=None):
        self.candidate = candidate
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, script, "--serve", json.dumps(candidate)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            encoding="utf-8",
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(environment or {})},
        )

    def ask(self, method, **arguments):
        """Calls a method of the candidate and returns its result, which must be plain values.

        Raises:
            RuntimeError: the call failed or the process died; the message ends with its output.
        """
        try:
            self.process.stdin.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.log.seek(0)
            raise RuntimeError(f"{self.candidate} died in {method!r}: {self.log.read()[-2000:]}")
        answer = json.loads(answer)
        if "error" in answer:
            raise RuntimeError(f"{self.candidate} failed in {method!r}: {answer['error']}")
        return answer["result"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def serve(make):
    """The child's side: builds the candidate from the command line and answers requests."""
    # Libraries print what they like; the answers get a channel of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    candidate = None
    for line in sys.stdin:
        try:
            if candidate is None:
                candidate = make(json.loads(sys.argv[sys.argv.index("--serve") + 1]))
            request = json.loads(line)
            result = getattr(candidate, request["method"])(**request["arguments"])
            answers.write(json.dumps({"result": result}) + "\n")
        except Exception as error:
            trace = "".join(traceback.format_exc(limit=-4))
            answers.write(json.dumps({"error": f"{error}\n{trace}"[:3000]}) + "\n")
        answers.flush()


def in_turn(workers, rounds, seconds, slice_seconds=0.5):
    """Times the prepared workers in turn.

    Args:
        workers: dict of name -> Worker, whose candidate has `time(repeats) -> list of seconds`.
        rounds: int, greatest number of rounds.
        seconds: float, time budget; after it, and two rounds, no further round begins.
        slice_seconds: float, work shorter than this is repeated within a round.

    Returns:
        dict of name -> list with the smallest seconds of one repeat in each round.
    """
    first = {name: min(worker.ask("time", repeats=1)) for name, worker in workers.items()}
    repeats = {name: max(1, min(50, int(slice_seconds / first[name]))) for name in workers}
    times = {name: [] for name in workers}
    names = list(workers)
    began = time.monotonic()
    for turn in range(rounds):
        if turn >= 2 and time.monotonic() - began > seconds:
            break
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(min(workers[name].ask("time", repeats=repeats[name])))
    return times


def ratio(ours, theirs):
    """How many times as fast as theirs ours is: median over the rounds that both were in."""
    return statistics.median(b / a for a, b in zip(ours, theirs, strict=True))


def best_of(call, seconds=0.4, least=3):
    """The smallest time of a call, after two calls to warm up."""
    call()
    call()
    times = []
    while len(times) < least or sum(times) < seconds:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def matrix_product_rate(framework, precision, shapes):
    """The machine's matrix products as this framework does them best, in FLOP/s.

    Args:
        framework: "tensorflow", "jax" or "torch".
        precision: "float32", "bfloat16" or "float16".
        shapes: list of (rows, inner, columns).

    Returns:
        dict "rows x inner x columns" -> floating point operations a second, of the fastest of the
        framework's own ways: compiled or not, accumulating in float32 or as it comes.
    """
    rates = {}
    for rows, inner, columns in shapes:
        calls = _products(framework, precision, rows, inner, columns)
        seconds = min(best_of(call) for call in calls)
        rates[f"{rows}x{inner}x{columns}"] = 2 * rows * inner * columns / seconds
    return rates


def _products(framework, precision, rows, inner, columns):
    if framework == "torch":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = getattr(torch, precision)
        a = torch.randn(rows, inner, device=device).to(dtype)
        b = torch.randn(inner, columns, device=device).to(dtype)

        def product():
            with torch.inference_mode():
                result = a @ b
            if device == "cuda":
                torch.cuda.synchronize()
            return result

        return [product]
    if framework == "tensorflow":
        import tensorflow as tf

        a = tf.cast(tf.random.normal((rows, inner)), precision)
        b = tf.cast(tf.random.normal((inner, columns)), precision)
        # One number of the result is fetched, so that the call ends when the product does.
        plain = tf.function(lambda x, y: (x @ y)[0, 0], jit_compile=False)
        compiled = tf.function(lambda x, y: x @ y, jit_compile=True)
        return [lambda: plain(a, b).numpy(), lambda: compiled(a, b)[0, 0].numpy()]
    import jax
    import jax.numpy as jnp

    a = jax.random.normal(jax.random.key(0), (rows, inner)).astype(precision)
    b = jax.random.normal(jax.random.key(1), (inner, columns)).astype(precision)
    plain = jax.jit(lambda x, y: x @ y)
    wide = jax.jit(lambda x, y: jnp.matmul(x, y, preferred_element_type="float32"))
    return [
        lambda: plain(a, b).block_until_ready(),
        lambda: wide(a, b).block_until_ready(),
    ]


def markdown_table(header, rows):
    """A table of strings and numbers for a report."""
    cells = [[f"{c:.2f}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
