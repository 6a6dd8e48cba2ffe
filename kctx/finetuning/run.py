"""Fine-tunes an encoder to a task, once or with several seeds."""

import dataclasses
import math
import warnings

import keras
import tensorflow as tf

from kctx import convert, heads, presets, training
from kctx.arguments import check_count, check_number
from kctx.finetuning.report import write_means, write_report
from kctx.presets.task import input_limits

_POOLER_UNUSED = r"Gradients do not exist for variables \['pooler/kernel', 'pooler/bias'\] when"


def run(options, make_work):
    """The whole of a recipe: trains, keeps the best epoch, evaluates it and reports.

    Args:
        options: `Options` or a subclass.
        make_work: callable of the options that reads the examples and gives a `FineTuning`.

    `options.output` gets preset/ (the best epoch: encoder, head, tokenizer, labels, loaded by
    `kctx.presets.load`), metrics.json with the baseline, predictions.jsonl, a PNG, log.csv,
    tensorboard/ and checkpoints/. With several seeds each has all this in a subfolder, and
    metrics.json holds the means.

    Raises:
        ValueError: options or data that cannot be used, or a folder that holds another run.
    """
    for name in ("epochs", "seeds", "patience"):
        if getattr(options, name) is not None:
            check_count(name, getattr(options, name))
    check_number("learning_rate", options.learning_rate, above=0)
    for name in ("head_rate", "weight_decay"):
        check_number(name, getattr(options, name), least=0)
    for name in ("warmup", "dropout"):
        check_number(name, getattr(options, name), least=0, most=1)
    check_number("layer_decay", options.layer_decay, above=0, most=1)
    if options.unfreeze_every is not None:
        check_number("unfreeze_every", options.unfreeze_every, above=0)
    if not 0 <= options.seed <= 2**32 - options.seeds:
        raise ValueError(
            "`seed`, and those that `seeds` adds, must lie in [0, 2**32). "
            f"Received: seed={options.seed}, seeds={options.seeds}"
        )
    if options.output.exists() and not options.output.is_dir():
        raise NotADirectoryError(f"`output` must be a folder. Received: {options.output}")
    print(training.setup(options.seed, options.dtype).describe())
    runs = {options.seed: options}
    if options.seeds > 1:
        seeds = range(options.seed, options.seed + options.seeds)
        folders = {seed: options.output / f"seed-{seed}" for seed in seeds}
        runs = {s: dataclasses.replace(options, seed=s, output=folders[s]) for s in seeds}
    if not options.resume:
        for own in runs.values():
            training.refuse_used(own.output / "checkpoints")
    work = make_work(options)
    print(work.describe())
    reports = {}
    for seed, own in runs.items():
        if options.seeds > 1:
            print(f"Seed {seed}")
        reports[seed] = fine_tune(own, work)
    if options.seeds > 1:
        write_means(work, reports, options.output)


def fine_tune(options, work):
    """One run; gives the metrics of its best epoch."""
    keras.utils.clear_session()  # names are the same in each of several runs
    settings = training.setup(options.seed, options.dtype)
    encoder, preprocessor = load_encoder(options, work.needs_pairs)
    model = work.model(encoder)
    step = length_step(preprocessor.sequence_length, settings.jit_compile)
    padded = preprocessor.with_options(pad_to_multiple=step)
    stream = work.stream(padded, options.seed)
    steps = stream.steps_per_epoch * options.epochs
    head = heads.head_of(model)
    model.compile(
        settings.scaled(make_optimizer(options, model, steps)),
        loss=head.output_loss(),
        metrics=head.output_metrics(),
        jit_compile=settings.jit_compile,
    )
    text_model = presets.TextModel(model, preprocessor, work.task, work.labels, work.task_options)
    text_model.asked()  # checks the options of the task
    with warnings.catch_warnings():
        # A head that looks at the tokens leaves the pooler as it is, which is no mistake.
        warnings.filterwarnings("ignore", _POOLER_UNUSED)
        training.fit_steps(
            model,
            lambda: weighted(stream.dataset(), work.class_weights),
            total_steps=steps,
            every=stream.steps_per_epoch,
            checkpoints=training.Checkpoints(
                options.output / "checkpoints",
                every=stream.steps_per_epoch,
                keep=1,
                stream=stream,
                fingerprint={**work.fingerprint(), "dtype": options.dtype},
            ),
            resume=options.resume,
            callbacks=make_callbacks(options, work, text_model, steps, stream.steps_per_epoch),
        )
    best = presets.load(options.output / "preset")
    metrics = write_report(work, work.answers(best), options.output)
    print(f"Saved {options.output / 'preset'}, the best epoch")
    return metrics


def length_step(longest, compiled):
    """What lengths are rounded up to a multiple of: int.

    Where steps are compiled there are at most eight lengths: one more costs as much time as dozens
    of steps, and less padding does not win it back.

    Args:
        longest: int, the greatest length.
        compiled: bool, whether steps are compiled.
    """
    return max(16, math.ceil(longest / 8)) if compiled else 16


def load_encoder(options, needs_pairs=False):
    """The encoder to start from, in `options.dtype`, and the preprocessor that belongs to it."""
    loaded, report = convert.load_preset(options.encoder, dtype=options.dtype)
    print(report)
    encoder, preprocessor = loaded.encoder, loaded.preprocessor
    if preprocessor is None:
        raise ValueError(f"The preset {options.encoder} has no preprocessor for raw text.")
    if needs_pairs and not preprocessor.takes_pairs:
        raise ValueError(
            f"This task has two texts in one input, and {type(preprocessor).__name__} of "
            f"{options.encoder} takes single texts."
        )
    # What the encoder has positions for: the preprocessor may have been saved with fewer.
    longest = input_limits(encoder).length or options.sequence_length
    if options.sequence_length > longest:
        print(f"Inputs have at most {longest} tokens, all the model takes")
    if options.random_weights:
        encoder = type(encoder).from_config(encoder.get_config())
    length = min(options.sequence_length, longest)
    return encoder, preprocessor.with_options(sequence_length=length)


def make_optimizer(options, model, steps):
    """AdamW with a rate that rises and falls, lower in lower layers where asked for."""
    rates = None
    if options.layer_decay != 1 or options.head_rate != 1:
        own = {f"(^|/){heads.head_of(model).name}/": options.head_rate}
        patterns = own if options.head_rate != 1 else None
        rates = training.layerwise_rates(model, options.layer_decay, patterns)
    warmup = min(round(options.warmup * steps), steps - 1)
    return training.AdamW(
        training.WarmupLinearDecay(options.learning_rate, warmup, steps),
        weight_decay=options.weight_decay,
        bias_correction=options.bias_correction,
        rates=rates,
    )


def make_callbacks(options, work, text_model, steps, steps_per_epoch):
    """Unfreezing, averaging, the choice of the best epoch, and the reports, in their order."""
    callbacks = []
    if options.unfreeze_every is not None:
        every = max(1, round(options.unfreeze_every * steps_per_epoch))
        callbacks.append(training.GradualUnfreezing(text_model.model, every))

    def evaluate():
        return work.metrics(work.answers(text_model))

    def save():
        text_model.save(options.output / "preset")

    if options.average != "none":
        if options.average == "ema":
            average = training.ExponentialMovingAverage()
        else:
            average = training.StochasticWeightAveraging(max(1, steps // 2), max(1, steps // 20))
        evaluate, save = average.averaged(evaluate), average.averaged(save)
        callbacks.append(average)
    patience = options.patience and options.patience * steps_per_epoch
    best = training.KeepBest(options.output / "best.json", evaluate, save, patience)
    return [*callbacks, best, *training.reports(options.output)]


def weighted(dataset, class_weights):
    """Batches with the weight of each label beside it; padding (-1) counts nowhere anyway."""
    if class_weights is None:
        return dataset
    weights = tf.constant(class_weights, tf.float32)
    return dataset.map(lambda x, y: (x, y, tf.gather(weights, tf.maximum(y, 0))))
