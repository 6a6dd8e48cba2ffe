import pytest

from kctx.data import split_sentences

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("No end", ["No end"]),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith paid $3.50 to Mr. J. R. Jones. He left.", 2),
        ("It rose 3.5 percent. 20 men came.", ["It rose 3.5 percent.", "20 men came."]),
        ("See No. 5 and Fig. 2 here. Then stop.", ["See No. 5 and Fig. 2 here.", "Then stop."]),
        ("Did he say no? No. That is all.", ["Did he say no?", "No.", "That is all."]),
        ('"Stop!" she said. "Why?" He left.', ['"Stop!" she said.', '"Why?"', "He left."]),
        ("He said (at 5 p.m. today) it was so. Yes.", 2),
        ("In the U.S. Senate they met. They left the U.S. The end.", 3),
        ("Well... maybe not. Wait... What?", ["Well... maybe not.", "Wait...", "What?"]),
        ("He ate (it all.) Then he slept.", ["He ate (it all.)", "Then he slept."]),
        ("see e.g. the text. Good.", ["see e.g. the text.", "Good."]),
        ("He said . Then he went .", ["He said .", "Then he went ."]),
        ("www.example.com is a site. Go.", ["www.example.com is a site.", "Go."]),
        ("So did I. Then we left.", ["So did I.", "Then we left."]),
        ("今天天气很好。我们走吧！你去吗？", ["今天天气很好。", "我们走吧！", "你去吗？"]),
        ("他说：“走吧。”我们走了。", ["他说：“走吧。”", "我们走了。"]),
        ("等等……他来了；好。", ["等等……", "他来了；", "好。"]),
        ("圆周率是3.14，对吗？对。", ["圆周率是3.14，对吗？", "对。"]),
        ("「本当？」はい。", ["「本当？」", "はい。"]),
        ("यह एक है। यह दो है।", ["यह एक है।", "यह दो है।"]),
        ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟", "نعم."]),
    ],
)
def test_cases(text, expected):
    sentences = split_sentences(text)
    if isinstance(expected, int):
        assert len(sentences) == expected, sentences
    else:
        assert sentences == expected


def test_nothing_is_lost(kctx_data):
    for name in ("enwiki/articles.txt", "hongloumeng/hongloumeng.txt"):
        text = (kctx_data / name).read_text(encoding="utf-8")[:200_000]
        sentences = split_sentences(text)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        assert len(sentences) > 1000
        assert all(s == s.strip() and s for s in sentences)
