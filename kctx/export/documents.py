"""The files that go with a SavedModel: what a client and a server's keeper need to know."""

from kctx.export.answers import EMBED, MEANINGS
from kctx.export.warmup import write_warmup
from kctx.files import write_json, write_text
from kctx.tasks import Task
from kctx.tasks.task import as_python

DEFAULT = "serving_default"


def describe(signatures, task):
    """What the real signatures take and give.

    Args:
        signatures: dict of concrete functions.
        task: `kctx.tasks.Task`.

    Returns:
        dict: signature -> {"inputs": {name: {dtype, shape, meaning}}, "outputs": {the same}}
    """

    def entry(spec, shape, meaning):
        return {"dtype": spec.dtype.name, "shape": shape, "meaning": meaning}

    known = {**Task.fields, **task.fields, **task.inputs}
    described, order = {}, list(known)
    for name, function in signatures.items():
        inputs = function.structured_input_signature[1]
        outputs = EMBED if name == "embed" else MEANINGS[task.name]
        if name == "token_ids":
            outputs = task.id_meanings or outputs
        described[name] = {
            "inputs": {
                key: entry(spec, f"({', '.join(known[key].axes)})", known[key].meaning)
                for key, spec in sorted(inputs.items(), key=lambda item: order.index(item[0]))
            },
            "outputs": {
                key: entry(function.structured_outputs[key], *meaning)
                for key, meaning in outputs.items()
            },
        }
    return described


def as_json(value):
    """Tensor to nested lists, as TensorFlow Serving's REST interface writes them."""
    return as_python(value)


def rows(columns):
    """Dict of columns to a list of dicts, one for each row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rest_request(signature_name, inputs):
    """Body of a REST request in row format, as a dict."""
    return {
        "signature_name": signature_name,
        "instances": rows({key: as_json(value) for key, value in inputs.items()}),
    }


def write_documents(folder, signatures, examples, facts, task):
    """Writes warm-up requests, examples, `signature.json` and `README.md` into `assets.extra`.

    Args:
        folder: pathlib.Path of `assets.extra`, must exist.
        signatures: dict of concrete functions.
        examples: dict: signature -> list of dicts of input tensors. All of them become warm-up
            requests, the first one also the example request.
        facts: dict of what else is to be told: name, version, task, labels, and so on.
        task: `kctx.tasks.Task`.
    """
    described = describe(signatures, task)
    write_json(folder / "signature.json", {**facts, "signatures": described})
    requests = [(name, inputs) for name, several in examples.items() for inputs in several]
    write_warmup(folder / "tf_serving_warmup_requests", facts["name"], requests)
    for name, several in examples.items():
        suffix = "" if name == DEFAULT else f"_{name}"
        write_json(folder / f"request_example{suffix}.json", rest_request(name, several[0]))
    answers = signatures[DEFAULT](**examples[DEFAULT][0])
    answers = {key: as_json(answers[key]) for key in described[DEFAULT]["outputs"]}
    write_json(folder / "response_example.json", {"predictions": rows(answers)})
    write_text(folder / "README.md", readme(described, {**facts, "long_texts": task.long_texts}))


def models_config(name):
    """Text of a TensorFlow Serving configuration for one model mounted at /models/<name>."""
    return (
        "model_config_list {\n"
        "  config {\n"
        f'    name: "{name}"\n'
        f'    base_path: "/models/{name}"\n'
        '    model_platform: "tensorflow"\n'
        "  }\n"
        "}\n"
    )


def docker_line(folder, name):
    """The command that serves `folder`, which holds the versions, with the stock image."""
    return (
        f'docker run --rm -p 8500:8500 -p 8501:8501 -v "{folder}:/models/{name}" '
        f"-e MODEL_NAME={name} tensorflow/serving"
    )


def curl_line(request, name):
    """The command that sends an example request to a local server."""
    return f'curl -d @"{request}" http://localhost:8501/v1/models/{name}:predict'


def readme(described, facts):
    """A page on one exported version, made from its real signatures."""
    name = facts["name"]
    here = f"saved_models/{name}/{facts['version']}"  # as `kctx export` has it by default
    lines = [
        f"# {name}, version {facts['version']}",
        "",
        f"A {facts['task']} model that takes raw text, made with kctx {facts['kctx']}. Servers of "
        f"TensorFlow {facts['tensorflow']} or a later version know all its ops.",
        f"Weights: {facts['weights_dtype']}.",
        "",
        "    " + docker_line(f"$PWD/saved_models/{name}", name),
        "    " + curl_line(f"{here}/assets.extra/request_example.json", name),
        "",
        "`response_example.json` holds the answer. "
        + facts["long_texts"].format(facts["sequence_length"]),
        "",
        "| signature | key | | dtype | shape | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for signature, sides in described.items():
        for side, entries in sides.items():
            for key, entry in entries.items():
                cells = (f"`{signature}`", f"`{key}`", side[:-1], *entry.values())
                lines.append("| " + " | ".join(cells) + " |")
    if facts["labels"]:
        lines += ["", "Labels, in the order of the model's outputs: " + ", ".join(facts["labels"])]
    if facts["options"]:
        options = ", ".join(f"{key} = {value}" for key, value in facts["options"].items())
        lines += ["", f"Options, fixed in the graph: {options}"]
    text_ops = ", ".join(facts["text_ops"]) or "none"
    needed = "Nothing but TensorFlow is needed to load this folder."
    if facts["text_ops"]:
        needed = (
            "The stock server links them; a Python program that loads this folder needs "
            "`import tensorflow_text` beside `import tensorflow`."
        )
    lines += [
        "",
        f"Ops of TensorFlow Text in the graph: {text_ops}. {needed}",
        "",
        "`preset/`, where present, is the trained model itself, from which fine-tuning can go on: "
        "`kctx.presets.load`.",
    ]
    return "\n".join(lines) + "\n"
