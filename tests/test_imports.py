"""Who may import whom, read from the syntax trees: `docs/architecture.md` says why.

`offences(name, source)` is a pure function, so that the rules themselves are tested too.
"""

import ast
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path for folder in ("kctx", "kctx_cli", "recipes") for path in ROOT.glob(f"{folder}/**/*.py")
)

# Folder or file -> what it may import beside the standard library and itself. "(inside)" means:
# only inside a function, so that the package imports without it.
ALLOWED = {
    "kctx/__init__.py": {"kctx"},
    "kctx/arguments.py": set(),
    "kctx/files.py": {"numpy"},
    "kctx/words.py": set(),
    "kctx/tag_schemes.py": set(),
    "kctx/weights.py": {"h5py"},
    "kctx/command_line.py": {"tyro"},
    "kctx/layers": {"keras"},
    "kctx/models": {"keras", "kctx.layers", "kctx.kernels", "numpy"},
    "kctx/kernels": {"keras", "numpy", "numba", "torch (inside)"},
    "kctx/objectives": {"keras", "kctx.layers"},
    "kctx/heads": {"keras", "kctx.layers"},
    "kctx/tokenizers": {
        "tensorflow",
        "tensorflow_text",
        "keras_nlp",
        "numpy",
        "tokenizers",
        "rich",
    },
    "kctx/preprocessors": {"kctx.tokenizers", "kctx.vectors", "tensorflow", "numpy"},
    "kctx/data": {
        "tensorflow",
        "numpy",
        "scipy",
        "tokenizers",
        "rich",
        "kctx.kernels",
        "kctx.tokenizers",
        "kctx.vectors",
    },
    "kctx/ngrams": {"numpy", "rich", "apache_beam (inside)"},
    "kctx/training": {"keras", "numpy", "rich", "kctx.weights"},
    "kctx/evaluation": {
        "keras",
        "numpy",
        "scipy",
        "sklearn",
        "seqeval",
        "rich",
        "kctx.vectors",
        "matplotlib (inside)",
    },
    "kctx/vectors": {"numpy", "rich"},
    "kctx/finetuning": {
        "keras",
        "tensorflow",
        "kctx.convert",
        "kctx.data",
        "kctx.heads",
        "kctx.presets",
        "kctx.training",
    },
    "kctx/tasks": {
        "keras",
        "numpy",
        "tensorflow",
        "kctx.data",
        "kctx.heads",
        "kctx.layers",
        "kctx.preprocessors",
        "kctx.tokenizers",
    },
    "kctx/presets": {
        "keras",
        "numpy",
        "rich",
        "kctx",
        "kctx.data",
        "kctx.heads",
        "kctx.layers",
        "kctx.models",
        "kctx.objectives",
        "kctx.preprocessors",
        "kctx.tasks",
        "kctx.training",
        "kctx.weights",
    },
    "kctx/convert": {
        "keras",
        "numpy",
        "rich",
        "safetensors",
        "kctx",
        "kctx.data",
        "kctx.heads",
        "kctx.models",
        "kctx.objectives",
        "kctx.preprocessors",
        "kctx.presets",
        "kctx.tokenizers",
        "kctx.vectors",
    },
    "kctx/export": {
        "keras",
        "tensorflow",
        "tensorflow_text",
        "numpy",
        "kctx",
        "kctx.heads",
        "kctx.layers",
        "kctx.preprocessors",
        "kctx.presets",
        "kctx.tasks",
    },
    # Nothing of kctx but inside functions: `kctx --help` must not wait for TensorFlow.
    "kctx_cli": {"tyro", "kctx_cli", "numpy (inside)", "kctx (inside)"},
    "recipes": {"keras", "kctx", "numpy", "rich", "tensorflow", "tyro", "matplotlib (inside)"},
    # Files that know more than their folder.
    "kctx/models/encoder.py": {"keras", "kctx.layers", "keras_nlp"},
    "kctx/models/causal_lm.py": {"keras", "kctx.layers", "keras_nlp"},
    "kctx/models/glove.py": {"keras", "kctx.layers", "kctx.vectors", "numpy"},
    "kctx/models/glove_rows.py": {"numpy", "scipy"},
    "kctx/models/word2vec.py": {
        "keras",
        "kctx.kernels",
        "kctx.layers",
        "kctx.vectors",
        "numpy",
    },
    "kctx/convert/tensorflow_checkpoint.py": {"numpy", "tensorflow (inside)"},
    "kctx/convert/torch_file.py": {"numpy", "torch (inside)"},
}

# What the files of kctx/models may import from their own folder: bases, and the plain in-order
# trainers beside them. Models never import each other.
SHARED_BY_MODELS = {
    "kctx.models.encoder",
    "kctx.models.causal_lm",
    "kctx.models.glove_rows",
    "kctx.models.sizes",
    "kctx.models.sparse_model",
    "kctx.models.word_rows",
}

# The only places that may ask for the backend or import one. Each has a plain twin that it is
# tested against, or guards a promise that Keras alone does not keep.
KNOWS_BACKEND = {
    "kctx/kernels/__init__.py": "torch's tensors share their memory with NumPy",
    "kctx/layers/bags.py": "sums of bags without a copy of the table",
    "kctx/layers/checked_inputs.py": "errors lose no weights under JAX",
    "kctx/layers/devices.py": "what is cheap depends on where it is done",
    "kctx/layers/dropout.py": "cheap random numbers on a CPU",
    "kctx/layers/fast_attention.py": "fused attention on a CPU",
    "kctx/layers/fast_product.py": "fast matrix products on a CPU",
    "kctx/layers/scan_states.py": "recursions that are compiled once",
    "kctx/layers/sparse_rows.py": "rows of large tables change in place",
    "kctx/layers/table_rows.py": "rows between tables and NumPy",
    "kctx/models/sparse_model.py": "Keras' signature of a training step differs by backend",
    "kctx/layers/id_check.py": "ids outside a table raise on every backend",
    "kctx/training": "optimizers, loss scaling and setup",
}
BACKENDS = {"tensorflow", "jax", "torch"}

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "__import__"}
UNSAFE_ARGUMENTS = {("allow_pickle", True), ("safe_mode", False), ("weights_only", False)}
PRIVATE = ("keras.src", "keras_nlp.src", "keras_hub.src", "keras_hub")


def rules_for(name, table):
    """The entry for a file: its own, or the one of the longest folder that holds it."""
    found = [key for key in table if name == key or name.startswith(key + "/")]
    return table[max(found, key=len)] if found else None


def imports(tree):
    """Each imported module as (dotted name, line, inside a function?)."""

    def visit(node, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield alias.name, child.lineno, inside
            elif isinstance(child, ast.ImportFrom):
                module = "." * child.level + (child.module or "")
                for alias in child.names:
                    joined = f"{module}.{alias.name}" if module == "kctx" else module
                    yield joined, child.lineno, inside
            inner = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from visit(child, inner)

    return visit(tree, False)


def package(module):
    """ "kctx.layers.attention" -> "kctx.layers"; "numpy.linalg" -> "numpy"."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "kctx" else parts[0]


def allowed(name, module, inside):
    known = package(module)
    if known in ("kctx.files", "kctx.arguments", "kctx.tag_schemes", "kctx.words"):
        return True
    if known in sys.stdlib_module_names or module.split(".")[0] in sys.stdlib_module_names:
        return True
    home = "/".join(name.split("/")[:2]).removesuffix(".py").replace("/", ".")
    if known == home:
        # Encoders never import each other; only what they share.
        if home == "kctx.models" and not name.endswith("/__init__.py"):
            return module in SHARED_BY_MODELS
        return True
    rules = rules_for(name, ALLOWED) or set()
    if known.startswith("kctx.") and (name.startswith("recipes/") or name == "kctx/__init__.py"):
        return True
    if known.startswith("kctx.") and name.startswith("kctx_cli/"):
        return inside
    if known == "numpy" and name in KNOWS_BACKEND:
        return True
    if known in BACKENDS and rules_for(name, KNOWS_BACKEND):
        return inside
    return known in rules or (inside and f"{known} (inside)" in rules)


def offences(name, source):
    """What a file does against the rules, as "file:line what" lines."""
    tree = ast.parse(source)
    found = []
    for module, line, inside in imports(tree):
        root = module.split(".")[0]
        if module.startswith("."):
            found.append((line, "relative import"))
        elif any(module == x or module.startswith(x + ".") for x in PRIVATE):
            found.append((line, f"imports the private {module}"))
        elif root in UNSAFE_MODULES:
            found.append((line, f"imports {module}, which runs what it reads"))
        elif root == "recipes":
            found.append((line, "imports a recipe"))
        elif root in {"torch", "jax"} and not inside:
            found.append((line, f"imports {root} at the top level"))
        elif not allowed(name, module, inside):
            found.append((line, f"may not import {module}"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in UNSAFE_CALLS:
            found.append((node.lineno, f"calls {called}"))
        if called == "torch.load" and "weights_only=True" not in ast.unparse(node):
            found.append((node.lineno, "calls torch.load without weights_only=True"))
        if called.endswith("enable_unsafe_deserialization"):
            found.append((node.lineno, f"calls {called}"))
        if called.split(".")[-1] == "backend" and not rules_for(name, KNOWS_BACKEND):
            found.append((node.lineno, "asks for the backend"))
        for argument in node.keywords:
            value = getattr(argument.value, "value", None)
            if any(argument.arg == x and value is y for x, y in UNSAFE_ARGUMENTS):
                found.append((node.lineno, f"passes {argument.arg}={value}"))
    return [f"{name}:{line} {what}" for line, what in sorted(found)]


def test_every_file_keeps_the_rules():
    assert len(FILES) > 40
    found = [
        offence
        for path in FILES
        for offence in offences(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


def test_every_folder_has_rules():
    unknown = [
        str(path.relative_to(ROOT))
        for path in FILES
        if rules_for(str(path.relative_to(ROOT)), ALLOWED) is None
    ]
    assert not unknown, f"add them to ALLOWED: {unknown}"


def test_exceptions_are_still_needed():
    """An exception for a file that is gone, or that no longer needs it, is dropped."""
    for name in KNOWS_BACKEND:
        path = ROOT / name
        files = [path] if path.suffix else sorted(path.glob("*.py"))
        assert any("backend()" in file.read_text(encoding="utf-8") for file in files), name


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("kctx/layers/a.py", "import tensorflow as tf", "may not import tensorflow"),
        ("kctx/layers/a.py", "def f():\n    import torch", "may not import torch"),
        ("kctx/layers/a.py", "import jax.numpy as jnp", "imports jax at the top level"),
        ("kctx/layers/id_check.py", "import torch", "imports torch at the top level"),
        ("kctx/layers/a.py", "from kctx.models import BERT", "may not import kctx.models"),
        ("kctx/layers/a.py", "from kctx import models", "may not import kctx.models"),
        ("kctx/layers/a.py", "import keras\nkeras.config.backend()", "asks for the backend"),
        ("kctx/layers/a.py", "from . import attention", "relative import"),
        ("kctx/models/gpt.py", "from kctx.models.bert import BERT", "may not import kctx.models"),
        ("kctx/models/gpt.py", "from kctx.models import BERT", "may not import kctx.models"),
        ("kctx/models/gpt.py", "import keras_nlp", "may not import keras_nlp"),
        ("kctx/objectives/a.py", "from kctx.models import BERT", "may not import kctx.models"),
        ("kctx/heads/a.py", "from kctx.models import BERT", "may not import kctx.models"),
        ("kctx/data/a.py", "import keras", "may not import keras"),
        ("kctx/convert/a.py", "import tensorflow", "may not import tensorflow"),
        (
            "kctx/convert/torch_file.py",
            "def f():\n    import torch\n    torch.load(1)",
            "torch.load",
        ),
        ("kctx/export/a.py", "from keras.src import layers", "private keras.src"),
        ("kctx/presets/a.py", "import keras_hub", "private keras_hub"),
        ("kctx/presets/a.py", "import pickle", "imports pickle"),
        ("kctx/presets/a.py", "eval('1')", "calls eval"),
        ("kctx/presets/a.py", "import numpy\nnumpy.load('x', allow_pickle=True)", "allow_pickle"),
        ("kctx/presets/a.py", "import keras\nkeras.models.load_model(1, safe_mode=False)", "safe_"),
        ("kctx/training/a.py", "import recipes.demo", "imports a recipe"),
        ("recipes/a.py", "from recipes.demo import main", "imports a recipe"),
        ("recipes/a.py", "import demo", "may not import demo"),
    ],
)
def test_the_rules_find_offences(name, source, message):
    assert any(message in offence for offence in offences(name, source)), offences(name, source)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("kctx/layers/a.py", "import math\nimport keras\nfrom keras import ops"),
        ("kctx/models/gpt.py", "from kctx.layers import Dense\nfrom kctx.models.encoder import E"),
        ("kctx/models/encoder.py", "import keras_nlp"),
        ("kctx/layers/id_check.py", "def f():\n    import torch"),
        (
            "kctx/convert/torch_file.py",
            "def f():\n    import torch\n    torch.load(weights_only=True)",
        ),
        ("recipes/a.py", "import kctx\nfrom kctx.data import records"),
    ],
)
def test_the_rules_let_the_rest_pass(name, source):
    assert offences(name, source) == []
