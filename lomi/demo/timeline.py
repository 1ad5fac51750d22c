"""The timeline: a row a step, its calls as marks in it; SVG without style attributes, as the page's policy wants."""

from lomi.demo.record import CallRecord, Run, Step
from lomi.report.markup import element, inert

_WIDE = 1000
_LEAST = 2.0
"""Least width of a mark, in thousandths of the run: a call of a millisecond must still be seen."""


def side_of(call: CallRecord) -> str:
    """Which lane a call belongs to: phone, page, or broker."""
    if "_android_" in call.tool or "deviceId" in call.arguments:
        return "phone"
    if "_browser_" in call.tool or "browserGeneration" in call.arguments:
        return "page"
    return "broker"


def _mark(started: float, took: float, total: float, kind: str, title: str, *, thin: bool) -> str:
    x = started / total * _WIDE
    wide = max(_LEAST, took / total * _WIDE)
    y, high = (4, 6) if thin else (0, 14)
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{high}" rx="1">'
        f"<title>{inert(title)}</title></rect>"
    )


def _row(number: int, step: Step, total: float) -> str:
    marks = [_mark(step.started_s, step.took_s, total, "span", step.title, thin=False)]
    marks += [
        _mark(call.started_s, call.took_s, total, side_of(call), f"{call.tool} {call.took_s * 1000:.0f} ms", thin=True)
        for call in step.calls
    ]
    picture = element(
        "svg", "".join(marks), viewBox=f"0 0 {_WIDE} 14", preserveAspectRatio="none", role="img", aria_label=step.title
    )
    link = element("a", f"{number}. {inert(step.title)}", href=f"#step-{number}")
    return element("li", link + picture + element("span", f"{step.took_s:.1f} s"))


def timeline(run: Run) -> str:
    """The whole run; each row is as wide as the run."""
    total = max(run.total_s, 0.001)
    rows = "\n".join(_row(number, step, total) for number, step in enumerate(run.steps, 1))
    legend = "".join(element("span", inert(name), class_=f"key {name}") for name in ("broker", "phone", "page"))
    scale = element("span", "0 s") + element("span", f"{total:.1f} s")
    return (
        element("ol", rows, class_="timeline")
        + element("p", scale, class_="scale")
        + element("p", legend, class_="legend")
    )
