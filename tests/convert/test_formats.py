"""Files that are truncated, corrupt or dangerous, in each format."""

import json
import os
import pickle
import struct

import numpy as np
import pytest
from safetensors import safe_open

from kctx import convert
from kctx.convert.safetensors_file import SafetensorsCheckpoint, write_safetensors
from kctx.convert.source import open_source
from kctx.convert.tensorflow_checkpoint import find_prefix
from tests.convert.folders import CONFIG, encoder_shapes, tensors_of, write_folder

pytestmark = pytest.mark.once


def test_write_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    arrays = {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.float32(2.5),
        "nothing": np.zeros((0, 4), "float32"),
        "turned": np.arange(6, dtype="float64").reshape(2, 3).T,
    }
    tensors = {name: (array.shape, lambda array=array: array) for name, array in arrays.items()}
    for dtype in ("float32", "float16"):
        write_safetensors(path, tensors, dtype)
        with safe_open(path, framework="numpy") as file:
            assert file.metadata() == {"format": "pt"}
            for name, array in arrays.items():
                found = file.get_tensor(name)
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, array)
    with pytest.raises(ValueError, match="must have shape"):
        write_safetensors(path, {"a": ((3, 2), lambda: arrays["a"])})


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated_safetensors(tmp_path, keep):
    folder = write_folder(tmp_path / "m", tensors_of(encoder_shapes()))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model.safetensors is not a whole safetensors file"):
        convert.load_encoder(folder)


def test_lengths_are_checked_before_memory_is_taken(tmp_path):
    """A header of an exabyte, and a tensor of four terabytes in a file of a hundred bytes."""
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", 2**60) + b"{}")
    with pytest.raises(ValueError, match="not a whole"):
        SafetensorsCheckpoint([path])
    entry = {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}
    header = json.dumps({"a": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"0000")
    with pytest.raises(ValueError, match="not a whole"):
        SafetensorsCheckpoint([path])


def test_index_cannot_reach_out_of_its_folder(tmp_path):
    write_folder(tmp_path / "outside", tensors_of(encoder_shapes()))
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    index = {"weight_map": {"bert.x": "../outside/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="not there: model.safetensors"):
        open_source(folder)


# PyTorch


def torch_folder(tmp_path, state):
    torch = pytest.importorskip("torch")
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    torch.save(state, folder / "pytorch_model.bin")
    return folder


def as_torch(tensors):
    torch = pytest.importorskip("torch")
    return {name: torch.tensor(value) for name, value in tensors.items()}


def test_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    tensors = tensors_of(encoder_shapes())
    folder = torch_folder(tmp_path, as_torch(tensors))
    encoder, report = convert.load_encoder(folder)
    assert report.file_format == "Hugging Face pytorch_model.bin"
    found = np.asarray(encoder.position_embedding.embeddings)
    np.testing.assert_array_equal(found, tensors["bert.embeddings.position_embeddings.weight"])

    half = {name: value.bfloat16() for name, value in as_torch(tensors).items()}
    torch.save(half, folder / "pytorch_model.bin")
    encoder, _ = convert.load_encoder(folder)
    np.testing.assert_allclose(np.asarray(encoder.position_embedding.embeddings), found, atol=0.02)

    torch.save(
        as_torch(tensors), folder / "pytorch_model.bin", _use_new_zipfile_serialization=False
    )
    encoder, _ = convert.load_encoder(folder)  # the format before PyTorch 1.6
    np.testing.assert_array_equal(np.asarray(encoder.position_embedding.embeddings), found)

    parameters = {name: torch.nn.Parameter(x) for name, x in as_torch(tensors).items()}
    torch.save(parameters, folder / "pytorch_model.bin")
    encoder, _ = convert.load_encoder(folder)
    np.testing.assert_array_equal(np.asarray(encoder.position_embedding.embeddings), found)

    for name, tensor in (("x", torch.ones(2, dtype=torch.complex64)), (3, torch.ones(2))):
        torch.save({**as_torch(tensors), name: tensor}, folder / "pytorch_model.bin")
        with pytest.raises(ValueError, match=f"plain dense tensors under names. .*{name!r}"):
            convert.load_encoder(folder)


def test_published_pytorch_checkpoint(kctx_data):
    pytest.importorskip("torch")
    encoder, report = convert.load_encoder(kctx_data / "checkpoints" / "bert_pytorch")
    assert len(report.matched) == len(encoder.weights) == 23
    assert not report.missing and not report.unexpected
    assert (encoder.vocabulary_size, encoder.hidden_dim, encoder.num_layers) == (250, 20, 1)


def test_truncated_pytorch(tmp_path):
    folder = torch_folder(tmp_path, as_torch(tensors_of(encoder_shapes())))
    path = folder / "pytorch_model.bin"
    whole = path.read_bytes()
    for keep in (0, 100, len(whole) // 2, len(whole) - 10):
        path.write_bytes(whole[:keep])
        with pytest.raises(ValueError, match="not a whole state dict"):
            convert.load_encoder(folder)


class Evil:
    def __reduce__(self):
        return os.mkdir, (Evil.path,)


def test_pickled_code_is_not_run(tmp_path):
    Evil.path = str(tmp_path / "was_run")
    folder = torch_folder(tmp_path, {"bert.x": Evil()})
    with pytest.raises(ValueError, match="Anything but tensors is refused"):
        convert.load_encoder(folder)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="Anything but tensors is refused"):
        convert.load_encoder(folder)
    assert not (tmp_path / "was_run").exists()


# TensorFlow


def tensorflow_folder(folder, names):
    """Writes tensors under the original names, as a TensorFlow 1 checkpoint."""
    import tensorflow as tf

    folder.mkdir()
    config = {key: value for key, value in CONFIG.items() if key != "model_type"}
    (folder / "bert_config.json").write_text(json.dumps(config), encoding="utf-8")
    tf.raw_ops.SaveV2(
        prefix=str(folder / "bert_model.ckpt"),
        tensor_names=list(names),
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(value) for value in names.values()],
    )
    return folder


def original_names(tensors):
    """The original spelling, by the rules of the published conversion script turned round."""
    names = {}
    for name, value in tensors.items():
        kernel = name.endswith("weight") and value.ndim == 2 and "embeddings" not in name
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        name = name.replace("LayerNorm.bias", "LayerNorm.beta")
        name = name.replace("embeddings.weight", "embeddings").replace("layer.", "layer_")
        name = name.replace(".weight", ".kernel").replace(".", "/")
        names[name] = value.T if kernel else value
    return names


def test_original_checkpoint_by_folder_and_prefix(tmp_path):
    tensors = tensors_of(encoder_shapes())
    names = original_names(tensors)
    extras = {
        "global_step": np.int64(3),
        "bert/pooler/dense/kernel/adam_m": np.zeros((8, 8), "float32"),
        "bert/pooler/dense/kernel/adam_v": np.zeros((8, 8), "float32"),
    }
    folder = tensorflow_folder(tmp_path / "m", {**names, **extras})
    (folder / "config").mkdir()  # folders do not matter
    for path in (
        folder,
        folder / "bert_model.ckpt",
        str(folder / "bert_model.ckpt.index"),
        folder / "bert_model.ckpt.data-00000-of-00001",
    ):
        encoder, report = convert.load_encoder(path)
        assert report.file_format == "TensorFlow 1 checkpoint"
        assert sorted(report.skipped) == sorted(extras)
        assert len(report.matched) == len(tensors)
        kernel = np.asarray(encoder.blocks[1].feed_forward.outer.kernel)
        np.testing.assert_array_equal(kernel, tensors["bert.encoder.layer.1.output.dense.weight"].T)


def test_original_classifier(tmp_path):
    """The head of the original fine-tuning script has names of its own, and is not a kernel."""
    names = original_names(tensors_of(encoder_shapes()))
    names["output_weights"] = np.arange(24, dtype="float32").reshape(3, 8)
    names["output_bias"] = np.arange(3, dtype="float32")
    model, report = convert.load_model(tensorflow_folder(tmp_path / "m", names))
    dense = model.layers[-1].dense
    np.testing.assert_array_equal(np.asarray(dense.kernel), names["output_weights"].T)
    np.testing.assert_array_equal(np.asarray(dense.bias), names["output_bias"])
    assert not report.unexpected


def test_without_configuration(tmp_path):
    folder = tensorflow_folder(tmp_path / "m", original_names(tensors_of(encoder_shapes())))
    (folder / "bert_config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no bert_config.json"):
        convert.load_encoder(folder)


def test_truncated_tensorflow(tmp_path):
    folder = tensorflow_folder(tmp_path / "m", original_names(tensors_of(encoder_shapes())))
    data, index = sorted(folder.glob("*.ckpt.*"))
    whole = data.read_bytes()
    data.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"Cannot read `bert/.*Was it truncated"):
        convert.load_encoder(folder)
    data.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with pytest.raises(ValueError, match="Cannot read `bert/"):  # one bit is wrong
        convert.load_encoder(folder)
    data.unlink()
    with pytest.raises(ValueError, match="Cannot read"):
        convert.load_encoder(folder)
    data.write_bytes(whole)
    index.write_bytes(index.read_bytes()[:-20])
    with pytest.raises(ValueError, match="Cannot read"):
        convert.load_encoder(folder)


def test_several_checkpoints_in_a_folder(tmp_path):
    for name in ("model.ckpt-10", "model.ckpt-20"):
        (tmp_path / f"{name}.index").write_bytes(b"")
    with pytest.raises(ValueError, match="several checkpoints.*model.ckpt-10, model.ckpt-20"):
        find_prefix(tmp_path)
    latest = 'model_checkpoint_path: "/moved/since/model.ckpt-20"\n'
    (tmp_path / "checkpoint").write_text(latest, encoding="utf-8")
    assert find_prefix(tmp_path) == tmp_path / "model.ckpt-20"
    assert find_prefix(tmp_path / "model.ckpt-10") == tmp_path / "model.ckpt-10"
    assert find_prefix(tmp_path / "absent") is None


def test_checkpoint_of_tensorflow_2(tmp_path):
    import tensorflow as tf

    tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(tmp_path / "model.ckpt"))
    with pytest.raises(ValueError, match="object-based checkpoint of TensorFlow 2"):
        convert.load_encoder(tmp_path)
