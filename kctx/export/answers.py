"""The named answers of an exported graph.

The keys are words of the task, fixed and documented here; they never depend on tensor names or on
what else was built in the process.
"""

from kctx.tasks import TASKS

# Task -> key of an output -> (shape, what it is), as printed in the files beside an export. B texts
# (or other requests), C classes, D dimensions, E entities, K guesses, M masks, N choices, W words;
# rows are padded to the longest of the batch.
MEANINGS = {name: task.meanings for name, task in TASKS.items()}
# What the signature `embed` gives, where a model has one.
EMBED = MEANINGS["embedding"]
