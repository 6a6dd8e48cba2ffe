"""Makes wordpiece_multilingual.npz: ids of Hugging Face's Rust BERT tokenizer.

    python tests/parity/make_wordpiece.py        (needs the package tokenizers)

Texts are our own; the vocabularies are learnt from them, so nothing of others is stored.
"""

from pathlib import Path

import numpy as np
import tokenizers

TEXTS = [
    "The quick brown fox jumps over the lazy dog. It wasn't amused!",
    "Straße, Äpfel und Öl: größtenteils übermäßig. GROSSE MASSE!",
    "Où est l’élève? Çà et là, naïvement… «Voilà», dit-elle.",
    "Быстрая бурая лиса; ёж и йод. СЪЕШЬ ЕЩЁ!",
    "Η γρήγορη αλεπού πηδάει. Ένα μήλο την ημέρα.",
    "敏捷的棕色狐狸跳过了懒狗。今天天气很好，我们去公园吧！",
    "素早い茶色の狐が怠け者の犬を飛び越えた。カタカナとひらがな。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول.",
    "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ",
    "Nhanh nâu cáo nhảy qua con chó lười.",
    "İstanbul'da ıhlamur; DİYARBAKIR.",
    "🙂👍🏽 👩‍👩‍👧 e-mail@example.com http://example.com/?q=1&b=2 #tag $5.00 €7 50%",
    "tab\tnew\nline\r\nnbsp\u00a0em\u2003ideographic\u3000zero\u200bwidth soft\u00adhyphen",
    "combining e\u0301 a\u0308 n\u0303 and precomposed é ä ñ, ligature ﬁ, fraction ½, x² and ª",
    "x" * 100 + " " + "y" * 101,
    "",
    "   ",
    "!!!???...",
    "1,234,567.89 -12e-3 0x7F ３４５",
]


def learn(lowercase):
    tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=lowercase)
    tokenizer.train_from_iterator(TEXTS * 3, vocab_size=600, min_frequency=2, show_progress=False)
    ids = tokenizer.get_vocab()
    vocabulary = sorted(ids, key=ids.get)
    ids = {token: index for index, token in enumerate(vocabulary)}
    return vocabulary, tokenizers.BertWordPieceTokenizer(ids, lowercase=lowercase)


def main():
    # Mixed ends of lines and words make a few hundred texts of the twenty.
    texts = TEXTS + [a[: len(a) // 2] + b[len(b) // 3 :] for a in TEXTS for b in TEXTS[::3]]
    stored = {"texts": np.void("\x1e".join(texts).encode())}
    for setting, lowercase in (("uncased", True), ("cased", False)):
        vocabulary, tokenizer = learn(lowercase)
        rows = [x.ids for x in tokenizer.encode_batch(texts, add_special_tokens=False)]
        stored[f"{setting}_vocabulary"] = np.void("\n".join(vocabulary).encode())
        stored[f"{setting}_ids"] = np.array([i for row in rows for i in row], np.int32)
        stored[f"{setting}_splits"] = np.cumsum([0, *map(len, rows)])
    np.savez_compressed(Path(__file__).with_name("wordpiece_multilingual.npz"), **stored)


if __name__ == "__main__":
    main()
