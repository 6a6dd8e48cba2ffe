"""Trained word vectors as a preset folder, from which fine-tuning and export go on."""

from kctx.models import StaticEncoder, SubwordEncoder
from kctx.preprocessors import SubwordsPreprocessor, WordsPreprocessor
from kctx.presets.writing import save


def from_vectors(folder, vectors, sequence_length=512, lowercase=False, subwords=None, **options):
    """Writes the preset of an encoder that looks words up in a table of vectors.

    Args:
        folder: str or `pathlib.Path`, as of `kctx.presets.save`.
        vectors: `kctx.vectors.Vectors`.
        sequence_length: int, most words of a text. Default 512.
        lowercase: bool, whether text is lower-cased before it is looked up, for vectors that were
            trained on such text. Default False.
        subwords: bool, whether words outside the table get a vector from their n-grams. Default:
            where the vectors can do it.
        **options: as of `StaticEncoder.from_vectors` or `SubwordEncoder.from_vectors`, for instance
            `trainable=False`: fine-tuning leaves the table as it is.

    Raises:
        ValueError: the vectors hold no words, or no subwords though these are asked for.
        FileExistsError: `folder` holds other files.
    """
    subwords = vectors.subwords is not None if subwords is None else subwords
    encoder_class = SubwordEncoder if subwords else StaticEncoder
    encoder = encoder_class.from_vectors(vectors, **options)
    preprocessor_class = SubwordsPreprocessor if subwords else WordsPreprocessor
    preprocessor = preprocessor_class.from_vectors(
        vectors, lowercase, sequence_length=sequence_length
    )
    save(folder, encoder, preprocessor)
