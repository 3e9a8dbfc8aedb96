"""Terms that ask or bind but name nothing. Negations are not among them: they change what a sentence says."""

_ENGLISH = """
a an the of in on at to for by with from as is are was were be been being do does did has have had and or but that
this these those it its what which who whom whose when where why how there if then than so such can could will
would should may might i you he she they we my your his her their our me him them us about into s
"""
_CHINESE = """
什么 么是 是什 哪些 哪个 哪里 哪一 哪位 多少 几个 谁是 是谁 怎么 怎样 如何 为什 么样 是哪 在哪 的是 了什 有什 有哪
什麼 麼是 哪個 哪裡 幾個 誰是 是誰 怎麼 怎樣 為什 麼樣 何时 何時 多久 请问 請問
"""

STOP_TERMS = frozenset((_ENGLISH + _CHINESE).split())
"""Words and, for Chinese, pairs of characters, as `terms` gives them."""
