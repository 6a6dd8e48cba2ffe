"""Every released size of BERT has exactly the published number of parameters."""

import keras
import pytest

from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence

pytestmark = pytest.mark.once

# Size -> encoder without pooler, with pooler, masked-LM model without pooler, pretraining model.
PUBLISHED = {
    "tiny": (4_369_408, 4_385_920, 4_416_698, 4_433_468),
    "mini": (11_104_768, 11_170_560, 11_201_594, 11_267_900),
    "small": (28_500_992, 28_763_648, 28_795_194, 29_058_876),
    "medium": (41_110_528, 41_373_184, 41_404_730, 41_668_412),
    "base": (108_891_648, 109_482_240, 109_514_298, 110_106_428),
    "base_cased": (107_719_680, 108_310_272, 108_340_804, 108_932_934),
    "large": (334_092_288, 335_141_888, 335_174_458, 336_226_108),
    "large_cased": (332_529_664, 333_579_264, 333_610_308, 334_661_958),
    "base_chinese": (101_677_056, 102_267_648, 102_290_312, 102_882_442),
    "base_multilingual_cased": (177_262_848, 177_853_440, 177_974_523, 178_566_653),
    "base_multilingual_uncased": (166_765_824, 167_356_416, 167_463_831, 168_055_961),
}
# The 24 compact models, with pooler: rows are 2, 4, ... 12 layers, columns 128, 256, 512, 768 wide.
GRID = (
    (4_385_920, 9_591_040, 22_458_880, 38_603_520),
    (4_782_464, 11_170_560, 28_763_648, 52_779_264),
    (5_179_008, 12_750_080, 35_068_416, 66_955_008),
    (5_575_552, 14_329_600, 41_373_184, 81_130_752),
    (5_972_096, 15_909_120, 47_677_952, 95_306_496),
    (6_368_640, 17_488_640, 53_982_720, 109_482_240),
)


@pytest.fixture(autouse=True)
def without_values():
    """Variables get shapes but no values, so that the large sizes cost neither time nor memory."""
    with keras.StatelessScope(initialize_variables=False):
        yield
    keras.utils.clear_session(free_memory=False)


def formula(vocabulary_size, num_layers, hidden_dim, pooler):
    """Number of parameters of an encoder, counted by hand for I = 4D."""
    embeddings = (vocabulary_size + 512 + 2 + 2) * hidden_dim
    blocks = num_layers * (12 * hidden_dim**2 + 13 * hidden_dim)
    return embeddings + blocks + pooler * (hidden_dim**2 + hidden_dim)


@pytest.mark.parametrize("size", PUBLISHED)
def test_published_counts(size):
    bare = BERT.from_size(size, pooler=False)
    encoder = BERT.from_size(size)
    masked_lm = MaskedLM(bare)
    pretraining = Joint([MaskedLM(encoder), NextSentence(encoder)])
    models = (bare, encoder, masked_lm, pretraining)
    assert tuple(model.count_params() for model in models) == PUBLISHED[size]


@pytest.mark.parametrize("row", range(6))
def test_compact_models(row):
    layers = 2 * row + 2
    counts = tuple(
        BERT.from_size(f"L{layers}_H{width}").count_params() for width in (128, 256, 512, 768)
    )
    assert counts == GRID[row]


def test_all_sizes_are_covered():
    grid = {f"L{layers}_H{width}" for layers in range(2, 13, 2) for width in (128, 256, 512, 768)}
    assert set(BERT.SIZES) == grid | set(PUBLISHED)


@pytest.mark.parametrize("size", BERT.SIZES)
def test_formula(size):
    """The published counts agree with a count by hand, so no size was mistyped in both tables."""
    arguments = BERT.SIZES[size]
    counts = [
        formula(
            arguments["vocabulary_size"], arguments["num_layers"], arguments["hidden_dim"], pooler
        )
        for pooler in (False, True)
    ]
    assert arguments["num_heads"] * 64 == arguments["hidden_dim"]
    assert arguments["intermediate_dim"] == 4 * arguments["hidden_dim"]
    if size in PUBLISHED:
        assert tuple(counts) == PUBLISHED[size][:2]
    else:
        layers, width = (int(part[1:]) for part in size.split("_"))
        assert counts[1] == GRID[layers // 2 - 1][(128, 256, 512, 768).index(width)]
