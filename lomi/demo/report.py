"""The report: one HTML page that needs nothing else, shows pictures and calls step by step, and runs no script."""

import json

from lomi.demo.gist import gist
from lomi.demo.plan import PLAN
from lomi.demo.record import CallRecord, Finding, Picture, Run, Side, Step
from lomi.demo.timeline import side_of, timeline
from lomi.report.document import base_style, document, png_source
from lomi.report.markup import element, inert, listed

_SIDES: tuple[Side, ...] = ("phone", "page")
_FOOTER = "Made by <code>lomi demo</code>. The same run is in transcript.json and junit.xml beside this page."
_MOST_TEXT = 6000
"""Characters of an answer that the page shows; the transcript holds it whole."""


def _header(run: Run) -> str:
    verdict = "Everything worked" if run.good else "Something failed"
    done = sum(step.problem is None for step in run.steps)
    receipts = sum(call.receipt is not None for call in run.calls)
    told = [
        f"{run.total_s:.1f} s",
        f"{done} of {len(PLAN)} steps",
        f"{len(run.calls)} calls",
        f"{receipts} receipts",
        f"{sum(finding.good for finding in run.findings)} of {len(run.findings)} findings as expected",
    ]
    totals = listed("ul", [element("li", inert(one)) for one in told], class_="totals")
    badge = element("p", inert(verdict), class_="verdict good" if run.good else "verdict bad")
    intro = inert(
        "An agent drove a phone and a page through Lomi, over MCP: under a policy that says what it may do, with a "
        "lease on each, and a receipt for every effect. What counts below is not what it said, but what the phone, "
        "the web server and the system recorded."
    )
    return element("header", element("h1", "Lomi demo") + badge + element("p", intro, class_="intro") + totals)


def _outcome(run: Run) -> str:
    """Both sides as they stood last, before a reader scrolls."""
    with_both = [step for step in run.steps if len(step.pictures) == len(_SIDES)]
    if not with_both:
        return ""
    last = with_both[-1]
    pictures = "".join(_picture(last.pictures[side], last) for side in _SIDES)
    return element("section", element("div", pictures, class_="pictures"), class_="step outcome")


def _finding(finding: Finding) -> str:
    kind, sign, words = ("good", "&#x2713;", "as expected") if finding.good else ("bad", "&#x2717;", "not as expected")
    mark = element("span", sign, class_=f"mark {kind}", role="img", aria_label=words)
    said = element("p", inert(finding.title), class_="what") + element(
        "p", f"{inert(finding.source)}: " + element("bdi", inert(finding.found)), class_="found"
    )
    if not finding.good:
        said += element("p", "expected: " + element("bdi", inert(finding.expected)), class_="found")
    return element("li", mark + element("div", said))


def _simulated(run: Run) -> str:
    rows = listed("ul", [element("li", inert(line)) for line in run.simulated])
    return element("section", element("h2", "What is simulated, and what is real") + rows, class_="simulated")


def _facts(run: Run) -> str:
    facts = (("Started", run.started_at), *run.facts)
    rows = [element("div", element("dt", inert(name)) + element("dd", inert(value))) for name, value in facts]
    return element("section", element("h2", "Ran on") + listed("dl", rows, class_="facts"))


def _picture(picture: Picture, step: Step) -> str:
    source = png_source(picture.png)
    shown = "The simulated phone" if picture.side == "phone" else "The page"
    image = (
        f'<img src="{source}" width="{picture.width}" height="{picture.height}" loading="lazy" '
        f'alt="{inert(shown)} at the end of the step {inert(step.title)}">'
    )
    return element("figure", image + element("figcaption", inert(shown)), class_=picture.side)


def _call(call: CallRecord) -> str:
    receipt = ""
    if call.receipt is not None:
        good = call.receipt.state == "succeeded"
        receipt = element(
            "span",
            inert(f"{call.receipt.state} / {call.receipt.effect_state}"),
            class_="receipt good" if good else "receipt bad",
            title=f"operation {call.receipt.operation_id}",
        )
    elif call.is_error:
        receipt = element("span", "refused", class_="receipt bad")
    head = (
        element("span", str(call.number), class_="number")
        + element("code", inert(call.tool), class_=side_of(call))
        + element("span", inert(gist(call)), class_="gist")
        + receipt
        + element("span", f"{call.took_s * 1000:.0f} ms", class_="time")
    )
    body = element("h4", "Arguments") + element("pre", inert(json.dumps(call.arguments, ensure_ascii=False, indent=1)))
    if call.receipt is not None:
        body += element("h4", "Receipt") + element("pre", inert(f"operation {call.receipt.operation_id}"))
    if call.settled is not None:
        lines = "\n".join(call.observed) or "(nothing changed)"
        body += element("h4", "Observation, settled" if call.settled else "Observation, not settled yet")
        body += element("pre", inert(lines[:_MOST_TEXT]))
    body += element("h4", "What the agent read") + element("pre", inert(call.text[:_MOST_TEXT]))
    return element("details", element("summary", head) + body, class_="call")


def _step(number: int, step: Step) -> str:
    count = len(step.calls)
    calls = f", {count} call{'' if count == 1 else 's'}" if count else ""
    head = element("h3", f"{number}. {inert(step.title)}") + element(
        "span", f"{step.took_s:.1f} s{calls}", class_="time"
    )
    parts = [element("div", head, class_="head"), element("p", inert(step.told), class_="told")]
    if step.problem is not None:
        parts.append(element("p", inert(step.problem), class_="problem"))
    shown = [step.pictures[side] for side in _SIDES if side in step.pictures]
    if shown:
        parts.append(element("div", "".join(_picture(picture, step) for picture in shown), class_="pictures"))
    parts += [_call(call) for call in step.calls]
    return listed("section", parts, class_="step", id=f"step-{number}")


def report(run: Run) -> str:
    """The whole page."""
    findings = element("h2", "What the records say")
    findings += listed("ul", [_finding(finding) for finding in run.findings], class_="findings")
    parts = [
        _header(run),
        _outcome(run),
        element("section", findings),
        _simulated(run),
        element("section", element("h2", "Timeline") + timeline(run)),
        element("h2", "Step by step"),
        *(_step(number, step) for number, step in enumerate(run.steps, 1)),
        _facts(run),
        element("footer", _FOOTER),
    ]
    return document(f"Lomi demo: {'good' if run.good else 'failed'}", base_style(), parts)
