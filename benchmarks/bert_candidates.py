"""Ours, keras-hub and Hugging Face behind the same calls, each in a process of its own.

`bert.py` starts this file with --serve and asks it by method name, see `runner.Worker`.
"""

import gc
import time

import runner
from bert_work import CEILING, LENGTH, SIZES, VOCABULARY, batch_for, masked_text, pretraining_batch


class Candidate:
    """What the parent calls by name, see `runner.Worker`."""

    def __init__(self, candidate):
        for key, value in candidate.items():
            setattr(self, key, value)
        self.framework = self.backend
        self.step = None

    def ceiling(self):
        _, width = SIZES[self.size]
        rows = self.batch * LENGTH
        shapes = [CEILING, (rows, width, width), (rows, width, 4 * width), (rows, 4 * width, width)]
        return runner.matrix_product_rate(self.framework, self.precision, shapes)

    def prepare(self, cell):
        self.step = None
        gc.collect()
        began = time.perf_counter()
        self.step = getattr(self, cell)(batch_for(cell, self.batch))
        self.step()
        self.step()
        return time.perf_counter() - began

    def time(self, repeats):
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - began)
        return seconds

    def release(self):
        self.step = None
        gc.collect()


class Ours(Candidate):
    """kctx on one Keras backend."""

    def __init__(self, candidate):
        super().__init__(candidate)
        import kctx.models
        from kctx.training.memory import keep_freed_memory

        keep_freed_memory()  # as `kctx.training.setup` does on a CPU
        # For inference the weights themselves are in the precision, for training float32.
        self.make = kctx.models.BERT.from_size
        self.encoder, self.trained = None, None

    def encoder_for(self, training):
        if self.trained is not training:
            self.encoder, self.trained = None, training
            gc.collect()
            mixed = training and self.precision != "float32"
            self.dtype = f"mixed_{self.precision}" if mixed else self.precision
            self.encoder = self.make(self.size, dtype=self.dtype)
        return self.encoder

    def vectors(self, rows):
        import keras

        encoder = self.encoder_for(training=False)
        outputs = {key: encoder.output[key] for key in ("sequence_output", "pooled_output")}
        model = keras.Model(encoder.input, outputs)
        model.compile(jit_compile=jit(self.backend))
        return model, {key: rows[key] for key in encoder.input}

    def inference(self, rows):
        model, inputs = self.vectors(rows)
        return lambda: model.predict_on_batch(inputs)

    def ragged(self, rows):
        from kctx.models import RaggedEncoder

        encoder = self.encoder_for(training=False)
        ids = [row[mask] for row, mask in zip(rows["token_ids"], rows["padding_mask"], strict=True)]
        ragged = RaggedEncoder(encoder, jit_compile=jit(self.backend))
        return lambda: ragged(ids)

    def training(self, rows):
        import keras

        from kctx.heads import Classifier, attach

        encoder = self.encoder_for(training=True)
        model = attach(encoder, Classifier(2, dtype=self.dtype))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(self.optimizer(), loss=loss, jit_compile=jit(self.backend))
        inputs = {key: rows[key] for key in encoder.input}
        return lambda: model.train_on_batch(inputs, rows["labels"])

    def pretraining(self, rows):
        model = self.objective()
        x, y, weights = pretraining_batch(model, rows)
        return lambda: model.train_on_batch(x, y, weights)

    def objective(self, **optimizer):
        from kctx.objectives import Joint, MaskedLM, NextSentence

        encoder = self.encoder_for(training=True)
        model = Joint([MaskedLM(encoder), NextSentence(encoder)])
        model.compile_for(self.optimizer(**optimizer), jit_compile=jit(self.backend))
        return model

    def optimizer(self, learning_rate=2e-5):
        from kctx.training import AdamW, LossScale

        optimizer = AdamW(learning_rate)
        return LossScale(optimizer) if self.dtype == "mixed_float16" else optimizer

    def curve(self, steps, learning_rate):
        """Losses of a masked-LM run on the text that every CPython carries."""
        import keras

        keras.utils.set_random_seed(0)
        batches = masked_text(self.batch, steps)
        rows = batch_for("pretraining", self.batch)
        schedule = keras.optimizers.schedules.PolynomialDecay(learning_rate, steps)
        model = self.objective(learning_rate=schedule)
        losses = []
        for batch in batches:
            x, y, weights = pretraining_batch(model, {**rows, **batch})
            losses.append(float(model.train_on_batch(x, y, weights, return_dict=True)["loss"]))
            model.reset_metrics()
        return losses


class KerasHub(Ours):
    """keras-hub's BERT on one Keras backend."""

    def __init__(self, candidate):
        Candidate.__init__(self, candidate)
        self.encoder, self.trained = None, None

    def make(self, size, dtype):
        import keras_nlp

        layers, width = SIZES[size]
        return keras_nlp.models.BertBackbone(
            VOCABULARY, layers, width // 64, width, 4 * width, dtype=dtype
        )

    def training(self, rows):
        import keras
        import keras_nlp

        encoder = self.encoder_for(training=True)
        model = keras_nlp.models.BertTextClassifier(encoder, 2, preprocessor=None)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras_adamw(2e-5), loss=loss, jit_compile=jit(self.backend))
        inputs = {key: rows[key] for key in encoder.input}
        return lambda: model.train_on_batch(inputs, rows["labels"])

    def ragged(self, rows):
        return self.inference(rows)


class HuggingFace(Candidate):
    """transformers in torch."""

    def __init__(self, candidate):
        super().__init__(candidate)
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        self.framework = "torch"
        self.torch, self.library = torch, transformers
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        layers, width = SIZES[self.size]
        self.settings = transformers.BertConfig(
            vocab_size=VOCABULARY,
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
            num_labels=2,
            attn_implementation="sdpa",
        )

    def inputs(self, rows):
        names = {
            "input_ids": rows["token_ids"],
            "token_type_ids": rows["segment_ids"],
            "attention_mask": rows["padding_mask"],
        }
        return {key: self.tensor(value) for key, value in names.items()}

    def tensor(self, array):
        return self.torch.tensor(array.astype("int64"), device=self.device)

    def inference(self, rows):
        model = self.library.BertModel(self.settings).eval()
        model = model.to(self.device, getattr(self.torch, self.precision))

        def step():
            with self.torch.inference_mode():
                outputs = model(**self.inputs(rows))
                found = outputs.last_hidden_state, outputs.pooler_output
                return [part.float().cpu().numpy() for part in found]

        return step

    ragged = inference

    def training(self, rows):
        model = self.library.BertForSequenceClassification(self.settings)
        return self.trainer(model, rows, {"labels": rows["labels"]})

    def pretraining(self, rows):
        import numpy as np

        labels = np.full_like(rows["token_ids"], -100)  # positions that are not predicted
        np.put_along_axis(labels, rows["positions"], rows["masked_labels"], axis=1)
        model = self.library.BertForPreTraining(self.settings)
        return self.trainer(model, rows, {"labels": labels, "next_sentence_label": rows["labels"]})

    def trainer(self, model, rows, labels):
        torch = self.torch
        model = model.to(self.device).train()
        optimizer = torch.optim.AdamW(
            model.parameters(), 2e-5, eps=1e-6, weight_decay=0.01, fused=True
        )
        half = self.precision != "float32"
        dtype = getattr(torch, self.precision) if half else torch.bfloat16

        def step():
            inputs = {**self.inputs(rows), **{k: self.tensor(v) for k, v in labels.items()}}
            with torch.autocast(self.device, dtype=dtype, enabled=half):
                loss = model(**inputs).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss.item()

        return step


CANDIDATES = {"ours": Ours, "keras-hub": KerasHub, "Hugging Face": HuggingFace}


def make(candidate):
    return CANDIDATES[candidate["library"]](candidate)


def jit(backend):
    """Whether to compile with XLA: on TensorFlow only where there is an accelerator."""
    if backend == "tensorflow":
        import tensorflow as tf

        return bool(tf.config.list_physical_devices("GPU"))
    return backend == "jax"


def keras_adamw(learning_rate):
    import keras

    return keras.optimizers.AdamW(
        learning_rate, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )


if __name__ == "__main__":
    runner.serve(make)
