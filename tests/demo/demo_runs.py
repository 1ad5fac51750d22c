"""Runs made by hand, for what is written about them."""

import struct
import zlib

from lomi.demo.plan import PLAN
from lomi.demo.record import CallRecord, Finding, Picture, Receipt, Run, Step

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\" \u202eevil\x1b[31m"


def png(width: int = 8, height: int = 4) -> bytes:
    """A small grey PNG."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def call(number: int = 1, text: str = "fine", tool: str = "lomi_android_input") -> CallRecord:
    """A call that succeeded."""
    return CallRecord(
        number=number,
        tool=tool,
        arguments={"event": {"type": "text", "text": text}},
        started_s=0.5,
        took_s=0.25,
        text=text,
        is_error=False,
        receipt=Receipt(operation_id=f"{number:040x}", state="succeeded", effect_state="complete"),
        observed=(text,),
        settled=True,
    )


def run(text: str = "fine", *, problem: str | None = None, steps: int = len(PLAN), good: bool = True) -> Run:
    """A run of the first `steps` of the plan, the last with a problem where one is given; `text` stands everywhere."""
    made = []
    for number, planned in enumerate(PLAN[:steps], 1):
        step = Step(
            key=planned.key, title=planned.title, told=planned.told, started_s=number * 1.0, ended_s=number + 0.5
        )
        step.calls.append(call(number, text))
        for side in ("phone", "page"):
            step.pictures[side] = Picture(side=side, name=f"{number}-{side}.png", png=png(), width=8, height=4)
        made.append(step)
    made[-1].problem = problem
    finding = Finding(key="one", title=text, source="the log", expected=text, found=text, good=good)
    return Run(
        started_at="2026-11-30T12:00:00+00:00",
        total_s=20.0,
        steps=tuple(made),
        findings=(finding,),
        facts=(("App", text),),
        simulated=("Simulated: " + text,),
    )
