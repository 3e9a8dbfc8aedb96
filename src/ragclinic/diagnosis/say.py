"""Sentences for people, said in English and in Chinese at the place where their numbers are known.

A sentence is a `str`, its English text, so that JSON and tests see plain text; the Chinese rides along.
"""


class Sentence(str):
    """English text that knows its Chinese; made by `say`."""

    zh: str


def say(en: str, zh: str, **values: object) -> Sentence:
    """The sentence with its `{places}` filled, alike in both languages.

    >>> say("{n:,} tokens", "{n:,} 个 token", n=1200).zh
    '1,200 个 token'
    """
    sentence = Sentence(en.format(**values))
    sentence.zh = zh.format(**values)
    return sentence


def in_language(text: str, lang: str) -> str:
    """The text in `zh` where it has it, else as it is.

    >>> in_language(say("slow", "慢"), "zh"), in_language("slow", "zh"), in_language(say("slow", "慢"), "en")
    ('慢', 'slow', 'slow')
    """
    return text.zh if lang == "zh" and isinstance(text, Sentence) else text
