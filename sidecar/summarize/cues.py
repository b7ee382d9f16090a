"""Names the words by which a sentence shows that it matters, or that it does not."""

from __future__ import annotations

from typing import Literal

Cue = Literal["decision", "rule", "request", "fact", "error", "open", "filler"]

ENGLISH: dict[Cue, str] = {
    "decision": """decide decided decides decision agreed agree choose chose chosen switch switched instead
        finally confirmed conclusion concluded resolved fixed changed replaced renamed removed moved
        migrated committed merged deployed released approved rejected cancelled canceled booked
        selected settled""",
    "rule": """must never always don't not mustn't should shouldn't only except unless important required
        require requires constraint limit prefer prefers preference avoid remember deadline budget
        policy ensure""",
    "request": """please need needs want wants help let's can could would how why what which when where who
        implement write create build make fix update explain find check review""",
    "fact": """i'm i've i'd my mine we're we've our name called lives live born birthday favorite favourite
        allergic wife husband daughter son mother father sister brother friend team company works
        working because reason recently completed achieved scored improved started finished planned
        plan planning schedule scheduled""",
    "error": """error errors exception failed fails failure failing broken bug crash crashed denied timeout
        invalid missing wrong cannot can't couldn't unable traceback regression conflict rejected
        undefined""",
    "open": """todo fixme next remaining pending unresolved unfinished blocked later yet still tomorrow
        follow-up waiting unclear question questions tbd wip""",
    "filler": """certainly absolutely glad happy hope hopefully feel hesitate welcome thanks thank great
        wonderful excellent perfect perfectly sounds looks helpful solid sure assist further
        additional""",
}
CHINESE: dict[Cue, tuple[str, ...]] = {
    "decision": (
        "决定",
        "改为",
        "改成",
        "选择了",
        "确认",
        "同意",
        "已经",
        "最后",
        "结论",
        "解决了",
        "完成了",
    ),
    "rule": ("必须", "不要", "不能", "务必", "只能", "需要", "应该", "重要", "截止", "记住", "禁止", "优先"),
    "request": ("请", "帮我", "能不能", "可以吗", "怎么", "为什么", "什么", "如何", "推荐"),
    "fact": (
        "我叫",
        "我是",
        "我的",
        "我在",
        "我去",
        "我们",
        "喜欢",
        "名字",
        "生日",
        "计划",
        "因为",
        "打算",
        "觉得",
    ),
    "error": ("错误", "失败", "异常", "报错", "无法", "问题", "超时", "故障", "崩溃"),
    "open": ("待办", "下一步", "未完成", "还没", "稍后", "明天", "下周", "等待", "尚未", "？"),
    "filler": (
        "希望对你有",
        "随时",
        "很高兴",
        "不客气",
        "祝你",
        "没问题",
        "当然可以",
        "作为人工智能",
        "作为一个",
    ),
}
WEIGHTS: dict[Cue, float] = {
    "decision": 1.6,
    "rule": 0.9,
    "request": 0.4,
    "fact": 1.0,
    "error": 1.4,
    "open": 0.8,
    "filler": -1.4,
}
CUE_OF_WORD: dict[str, Cue] = {word: cue for cue, words in ENGLISH.items() for word in words.split()}


def cues_in(words: list[str], text: str) -> set[Cue]:
    """The cues that a text gives; `words` are its words in lower case."""
    cues: set[Cue] = {CUE_OF_WORD[word] for word in words if word in CUE_OF_WORD}
    if not text.isascii():
        for cue, marks in CHINESE.items():
            if any(mark in text for mark in marks):
                cues.add(cue)
    return cues
