"""Makes the stored references of the BERT parity tests from the public PyTorch implementation.

    python tests/parity/make_bert.py --tf1 FOLDER_OF_THE_TF1_CHECKPOINT

Needs transformers and torch, which the tests themselves do not. Everything is computed in float32
with plain ("eager") attention and without dropout. Written beside this file:

bert_erf.npz, bert_tanh.npz, bert_relu.npz
    config.json as text; `weights/...`, the state dict of a tiny random `BertForPreTraining` and
    the classifier of a `BertForSequenceClassification`; inputs of two lengths, with ragged masks
    and three segment types; all hidden states, pooled outputs and logits.
bert_heads.npz
    config.json as text; one encoder, and `KIND/weights/...`, a head of each kind of
    `HEADS`; inputs (B, N, T), which only multiple choice sees so, others as B·N rows; all logits.
bert_tf1.npz
    outputs only, of the same implementation on the weights of a TensorFlow 1 checkpoint.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).resolve().parent
ACTIVATIONS = {"erf": "gelu", "tanh": "gelu_new", "relu": "relu"}
# A hand-sized stand-in for the real thing in all respects but size: odd vocabulary, 3 segments.
SIZES = {
    "vocab_size": 61,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 28,
    "max_position_embeddings": 24,
    "type_vocab_size": 3,
    "layer_norm_eps": 1e-12,
    "num_labels": 5,
}
BATCHES = {"short": (4, 7), "full": (3, 24)}


# Kind -> (number of labels, names of its outputs).
HEADS = {
    "SequenceClassification": (5, ("logits",)),
    "Regression": (1, ("logits",)),
    "TokenClassification": (5, ("logits",)),
    "QuestionAnswering": (2, ("start_logits", "end_logits")),
    "MultipleChoice": (1, ("logits",)),
}


def make_inputs(rng, batch, length, vocabulary_size, num_segments):
    """Random inputs; the first row is full, the last one has one real token."""
    lengths = np.array([length, *rng.integers(2, length, batch - 2), 1])
    mask = np.arange(length) < lengths[:, None]  # (B, T)
    return {
        "token_ids": rng.integers(0, vocabulary_size, (batch, length)).astype("int32") * mask,
        "segment_ids": rng.integers(0, num_segments, (batch, length)).astype("int32") * mask,
        "padding_mask": mask,
    }


def arguments(inputs):
    """Our inputs under their names."""
    return {
        "input_ids": torch.tensor(inputs["token_ids"].astype("int64")),
        "token_type_ids": torch.tensor(inputs["segment_ids"].astype("int64")),
        "attention_mask": torch.tensor(inputs["padding_mask"].astype("int64")),
    }


def encoder_outputs(model, inputs):
    """All hidden states (L+1, B, T, D) and the pooled output (B, D) of a `BertModel`."""
    outputs = model(**arguments(inputs), output_hidden_states=True)
    return torch.stack(outputs.hidden_states).numpy(), outputs.pooler_output.numpy()


def randomise(model, generator):
    """Values large enough that nothing is nearly linear, norms and biases included."""
    for name, parameter in model.named_parameters():
        gain = "LayerNorm.weight" in name
        with torch.no_grad():
            parameter.copy_(
                torch.randn(parameter.shape, generator=generator) * (0.2 if gain else 0.3) + gain
            )


@torch.no_grad()
def make_reference(activation):
    """Arrays of one activation."""
    generator = torch.Generator().manual_seed(7)
    rng = np.random.default_rng(11)
    config = transformers.BertConfig(
        **SIZES, hidden_act=ACTIVATIONS[activation], attn_implementation="eager"
    )
    pretraining = transformers.BertForPreTraining(config).eval()
    classifier = transformers.BertForSequenceClassification(config).eval()
    randomise(pretraining, generator)
    randomise(classifier.classifier, generator)
    classifier.bert.load_state_dict(pretraining.bert.state_dict())

    state = {**pretraining.state_dict(), **classifier.state_dict()}
    state = {name: value for name, value in state.items() if ".decoder." not in name}
    arrays = {f"weights/{name}": value.numpy() for name, value in state.items()}
    arrays["config"] = json.dumps({**config.to_dict(), "architectures": None})
    for name, (batch, length) in BATCHES.items():
        inputs = make_inputs(rng, batch, length, config.vocab_size, config.type_vocab_size)
        hidden_states, pooled = encoder_outputs(pretraining.bert, inputs)
        outputs = pretraining(**arguments(inputs))
        arrays |= {f"{name}/{key}": value for key, value in inputs.items()}
        arrays |= {
            f"{name}/hidden_states": hidden_states,
            f"{name}/pooled_output": pooled,
            f"{name}/masked_lm": outputs.prediction_logits.numpy(),
            f"{name}/next_sentence": outputs.seq_relationship_logits.numpy(),
            f"{name}/classification": classifier(**arguments(inputs)).logits.numpy(),
        }
    return arrays


@torch.no_grad()
def make_heads_reference():
    """Arrays of one encoder with a head of each kind."""
    generator = torch.Generator().manual_seed(17)
    rng = np.random.default_rng(19)
    config = transformers.BertConfig(**SIZES, hidden_act="gelu", attn_implementation="eager")
    encoder = transformers.BertModel(config).eval()
    randomise(encoder, generator)
    arrays = {f"weights/bert.{name}": x.numpy() for name, x in encoder.state_dict().items()}
    arrays["config"] = json.dumps({**config.to_dict(), "architectures": None})
    batch, choices, length = 4, 3, 9
    inputs = make_inputs(rng, batch * choices, length, config.vocab_size, config.type_vocab_size)
    arrays |= {key: value.reshape(batch, choices, length) for key, value in inputs.items()}
    for kind, (num_labels, outputs) in HEADS.items():
        config.num_labels = num_labels
        theirs = kind.replace("Regression", "SequenceClassification")
        model = getattr(transformers, f"BertFor{theirs}")(config).eval()
        model.bert.load_state_dict(encoder.state_dict(), strict=False)
        for name, module in model.named_children():
            if name != "bert":
                randomise(module, generator)
                state = module.state_dict(prefix=f"{name}.")
                arrays |= {f"{kind}/weights/{key}": x.numpy() for key, x in state.items()}
        asked = arguments(inputs)
        if kind == "MultipleChoice":
            asked = {key: x.reshape(batch, choices, length) for key, x in asked.items()}
        made = model(**asked)
        arrays |= {f"{kind}/{name}": getattr(made, name).numpy() for name in outputs}
    return arrays


@torch.no_grad()
def make_tf1_reference(folder):
    """Outputs for the weights of a TensorFlow 1 checkpoint, mapped here by hand, not by kctx."""
    import tensorflow as tf

    fields = json.loads((folder / "bert_config.json").read_text(encoding="utf-8"))
    config = transformers.BertConfig(**fields, attn_implementation="eager")
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    model = transformers.BertForPreTraining(config).eval()
    state = model.state_dict()
    for name in list(state):
        theirs = name.replace("cls.predictions.bias", "cls.predictions.output_bias")
        theirs = theirs.replace("seq_relationship.weight", "seq_relationship.output_weights")
        theirs = theirs.replace("seq_relationship.bias", "seq_relationship.output_bias")
        theirs = theirs.replace("decoder.weight", "decoder").replace("decoder.bias", "output_bias")
        theirs = theirs.replace("LayerNorm.weight", "LayerNorm.gamma")
        theirs = theirs.replace("LayerNorm.bias", "LayerNorm.beta")
        theirs = theirs.replace("embeddings.weight", "embeddings").replace(".layer.", ".layer_")
        theirs = theirs.replace(".weight", ".kernel").replace(".", "/")
        theirs = theirs.replace("cls/predictions/decoder", "bert/embeddings/word_embeddings")
        value = reader.get_tensor(theirs)
        state[name] = torch.tensor(value.T.copy() if theirs.endswith("/kernel") else value)
    model.load_state_dict(state)
    rng = np.random.default_rng(13)
    inputs = make_inputs(rng, 4, 16, config.vocab_size, config.type_vocab_size)
    hidden_states, pooled = encoder_outputs(model.bert, inputs)
    outputs = model(**arguments(inputs))
    return {
        **inputs,
        "hidden_states": hidden_states,
        "pooled_output": pooled,
        "masked_lm": outputs.prediction_logits.numpy(),
        "next_sentence": outputs.seq_relationship_logits.numpy(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tf1", type=Path, help="folder with bert_model.ckpt and its config")
    options = parser.parse_args()
    for activation in ACTIVATIONS:
        np.savez_compressed(HERE / f"bert_{activation}.npz", **make_reference(activation))
    np.savez_compressed(HERE / "bert_heads.npz", **make_heads_reference())
    if options.tf1:
        np.savez_compressed(HERE / "bert_tf1.npz", **make_tf1_reference(options.tf1))
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
