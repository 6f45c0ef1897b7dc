"""A small dictionary in the layout of jieba's, with words of every class that sentences are made of."""

from __future__ import annotations

LINES = """
我 300 r
他们 90 r
学生 50 n
老师 40 n
问题 60 n
鼐 9 n
齤人 9 n
中华人民共和国 99 n
AA制 9 n
喜欢 40 v
学习 50 v
研究 20 vn
新 50 a
容易 30 a
突然 30 ad
经常 60 d
从 90 p
虽然 30 c
个 99 q
里 90 f
现在 50 t
心里 20 s
北京 60 ns
英语 20 nz
自言自语 9 i
涓 99 zg
""".strip().splitlines()
