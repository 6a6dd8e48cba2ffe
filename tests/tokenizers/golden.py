"""Strings and the tokens that the reference implementations give, over a vocabulary of 91 entries.

Each was computed by google-research/bert and by Hugging Face's two BERT tokenizers, which agree
where nothing else is said.
"""

VOCABULARY = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the quick brown fox ##es un ##aff ##able hello world cafe café "
    "naive ##ly re ##sume 中 国 人 ##国 a b c ##b ##c ! , . ? - ' $ 100 ##0 1 ##1 ##2 ##3 ² ##² 日 "
    "本 の ##の カ ##カ タ ##タ 한 국 ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ @ user ##name # 🙂 ##🙂 ß strasse "
    "straße i ##\u0307 İ istanbul ##stanbul ï … — x ##x e ##\u0301 ab hel ##lo \u200d ^ ` ~ | ok"
).split(" ")

UNK = "[UNK]"

# Text -> tokens of the uncased tokenizer, separated by spaces.
UNCASED = {
    "": "",
    "   \t\n": "",
    "Hello, World!": "hello , world !",
    "unaffable": "un ##aff ##able",
    "unaffablezz": UNK,
    "The café naïve résumé": "the cafe naive re ##sume",
    "CAFE\u0301": "cafe",
    "中国人abc": "中 国 人 ab ##c",
    "日本の カタカナ": "日 本 の [UNK]",
    "한국": "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ",
    "hel\0lo\ufffd a\u200db": "hello ab",
    "a\u00a0b\u2003c\u3000a": "a b c a",
    "a\tb\nc\rb": "a b c b",
    "@username #100 $100 ^`~|": "@ user ##name # 100 $ 100 ^ ` ~ |",
    "…—ok": "… — ok",
    "🙂🙂 ok🙂": "🙂 ##🙂 ok ##🙂",
    "a \U0001f468\u200d\U0001f469 b": "a [UNK] b",
    "straße STRASSE": "straße strasse",
    "İstanbul ISTANBUL": "istanbul istanbul",
    "1² 123 100": "1 ##² 1 ##2 ##3 100",
    "x" * 100: "x" + " ##x" * 99,
    "x" * 101: "x" + " ##x" * 100,
    "x" * 201: UNK,
    "don't re-sume": "[UNK] ' [UNK] re - [UNK]",
    "\u202eabc": "ab ##c",
    "[CLS] hello [MASK]": "[UNK] [UNK] [UNK] hello [UNK] [UNK] [UNK]",
    "\U00020000a": "[UNK] a",
    "a\u0085b": "ab",
    "a\vb": "ab",
    "a\u00adb": "ab",
    "a\ufeffb": "ab",
    "a\u2028b": "a b",
    "\ue000a": UNK,
    "a\u0378b": UNK,
}

CASED = {
    "The café naïve résumé": "[UNK] café [UNK] [UNK]",
    "한국": UNK,
    "İstanbul ISTANBUL": "İ ##stanbul [UNK]",
    "hello, 中国": "hello , 中 国",
}
