"""The HTML report: what needs a look first, pictures, where the time went, every test with every attempt."""

from importlib.resources import files

from lomi.lab.engine import Shelf
from lomi.lab.report.lanes import lane_chart, lane_table
from lomi.lab.report.model import RunReport, ShardReport, TestReport, path_of
from lomi.lab.shard import Artifact, Attempt, ReceiptNote
from lomi.report.document import base_style, document, png_source, video_source
from lomi.report.markup import element, inert, listed
from lomi.report.picture import png_size, video_size

MOST_PICTURES = 24 << 20
"""Bytes of pictures and videos inside the page; more are linked."""
_SHOWN = {"picture": (png_size, png_source), "video": (video_size, video_source)}
_MOST_TEXT = 12_000
_WORDS = {
    "passed": "Passed",
    "failed": "Failed",
    "infra": "The lab failed",
    "cancelled": "Cancelled",
    "deadline": "Out of time",
}
_FOOTER = (
    "Made by <code>lomi lab run</code>. The same run is in report.json and junit.xml beside this page; "
    "<code>lomi lab verify</code> checks all of it against its hashes and the broker's receipts."
)


def page(run: RunReport, shelf: Shelf) -> str:
    """The whole page; blocks for the pictures.

    Raises:
        OSError: a picture can't be read.
    """
    style = base_style() + files("lomi.lab.report").joinpath("lab.css").read_text(encoding="utf-8")
    gallery = _Gallery(shelf)
    loud = [test for test in run.tests if test.state != "passed" and not test.skipped]
    flaky = [test for test in run.tests if test.flaky]
    shown = {test.id for test in (*loud, *flaky)}
    unsteady = [test for test in run.tests if test.unsteady and test.id not in shown]
    shown |= {test.id for test in unsteady}
    quiet = [test for test in run.tests if test.id not in shown]
    parts = [_header(run)]
    if run.warnings:
        rows = [element("li", inert(line)) for line in run.warnings]
        parts.append(element("section", listed("ul", rows), class_="simulated"))
    if loud:
        parts.append(element("h2", "What needs a look"))
        parts += [_test(test, gallery, opened=len(loud) <= 10) for test in loud]
    if flaky:
        parts.append(element("h2", "Flaky: failed, then passed"))
        parts += [_test(test, gallery, opened=False) for test in flaky]
    if unsteady:
        parts.append(element("h2", "Flaky over the last runs"))
        parts += [_test(test, gallery, opened=False) for test in unsteady]
    parts.append(element("section", element("h2", "Devices") + lane_chart(run) + lane_table(run)))
    if quiet:
        parts.append(element("h2", f"The other {len(quiet)} tests"))
        parts += [_test(test, gallery, opened=False) for test in quiet]
    parts.append(_shards(run))
    parts.append(_facts(run))
    parts.append(element("footer", _FOOTER))
    return document(f"{run.name}: {_WORDS.get(run.outcome, run.outcome)}", style, parts)


def _header(run: RunReport) -> str:
    good = run.exit_code == 0
    badge = element("p", inert(_WORDS.get(run.outcome, run.outcome)), class_=f"verdict {'good' if good else 'bad'}")
    skipped = sum(test.skipped for test in run.tests)
    told = [f"{len(run.tests)} planned", *(f"{count} {state.replace('_', ' ')}" for state, count in run.counts.items())]
    told += [f"{skipped} of them skipped" for _ in range(skipped > 0)]
    told += [f"{run.retries} retries", f"{sum(test.flaky for test in run.tests)} flaky", f"{run.wall_s:.1f} s"]
    totals = listed("ul", [element("li", inert(one)) for one in told], class_="totals")
    return element("header", element("h1", element("bdi", inert(run.name))) + badge + totals)


class _Gallery:
    """Pictures and videos inside the page, as long as there is room."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._left = MOST_PICTURES

    def picture(self, artifact: Artifact) -> str | None:
        """The picture or video; None when it is none, or when the page is full."""
        if artifact.kind not in _SHOWN:
            return None
        size_of, source_of = _SHOWN[artifact.kind]
        try:
            content = self._shelf.path_of(artifact.sha256).read_bytes()
        except KeyError:
            return None
        size = size_of(content)
        if size is None or len(content) > self._left:
            return None
        self._left -= len(content)
        wide, high = size
        words = inert(artifact.name)
        return f'<img src="{source_of(content)}" width="{wide}" height="{high}" loading="lazy" alt="{words}">'


def _test(test: TestReport, gallery: _Gallery, *, opened: bool) -> str:
    state = "skipped" if test.skipped else test.state.replace("_", " ")
    good = test.state == "passed" or test.skipped
    marks = element("span", inert(state), class_=f"receipt {'good' if good else 'bad'}")
    if test.flaky:
        marks += element("span", "flaky", class_="receipt bad")
    elif test.unsteady:
        marks += element("span", "flaky over runs", class_="receipt note")
    if test.quarantine is not None:
        marks += element("span", "in quarantine", class_="receipt note")
    head = (
        element("span", str(test.number), class_="number")
        + element("code", element("bdi", inert(test.id)), class_="gist")
        + marks
        + element("span", f"{test.seconds:.2f} s", class_="time")
    )
    body = "".join(element("p", inert(line), class_="told") for line in _lines(test) if line)
    body += "".join(_attempt(test, attempt, gallery) for attempt in test.attempts)
    return element(
        "details", element("summary", head) + body, class_="call", id=f"test-{test.number}", open="" if opened else None
    )


def _lines(test: TestReport) -> tuple[str, ...]:
    past = test.past
    return (test.why, _quarantined(test), f"It {past}." if past else "")


def _quarantined(test: TestReport) -> str:
    return "" if test.quarantine is None else f"In quarantine, so it does not decide: {test.quarantine}"


def _attempt(test: TestReport, attempt: Attempt, gallery: _Gallery) -> str:
    where = [attempt.host, *attempt.phones, *(f"generation {name}" for name in attempt.generations)]
    where.append(f"shard {attempt.shard}")
    times = ", ".join(f"{phase.part} {phase.seconds:.2f} s" for phase in attempt.phases)
    body = element("h4", inert(f"Attempt {attempt.attempt}: {attempt.verdict.replace('_', ' ')}"))
    body += element("p", inert("; ".join(part for part in (", ".join(where), times) if part)), class_="found")
    if attempt.reason:
        body += element("p", element("bdi", inert(attempt.reason)), class_="problem" if _bad(attempt) else "told")
    for title, text in (("Detail", attempt.detail), ("Output", attempt.output)):
        if text:
            body += element("h4", title) + element("pre", inert(_cut(text)))
    figures = links = ""
    for place, artifact in enumerate(attempt.artifacts, 1):
        path = path_of(test, attempt, artifact, place)
        link = element("a", inert(artifact.name), href=path)
        image = gallery.picture(artifact)
        if image is not None:
            figures += element("figure", image + element("figcaption", link))
        said = f" {artifact.kind}, {artifact.bytes} bytes, SHA-256 {artifact.sha256}"
        said += f", generation {artifact.generation}" if artifact.generation else ""
        said += f", receipt {artifact.operation}" if artifact.operation else ""
        links += element("li", link + inert(said))
    if figures:
        body += element("div", figures, class_="pictures")
    if links:
        body += element("h4", "Files") + element("ul", links, class_="files")
    if attempt.receipts:
        rows = [element("li", inert(_receipt(note))) for note in attempt.receipts]
        body += element("h4", f"{len(rows)} receipts") + listed("ul", rows, class_="files")
    return body


def _bad(attempt: Attempt) -> bool:
    return attempt.verdict in ("failed", "infra_error")


def _receipt(note: ReceiptNote) -> str:
    return " ".join((note.operation_id, note.tool, note.state, "/", note.effect, note.generation or ""))


def _cut(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    half = _MOST_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are in report.json ...]\n{text[-half:]}"


def _shard(shard: ShardReport) -> str:
    told = f"shard {shard.number}: {len(shard.tests)} tests, {shard.host or 'no host'}, waited {shard.waited_s:.2f} s"
    return told + (f"; {' '.join(shard.trouble.split())[:300]}" if shard.trouble else "")


def _shards(run: RunReport) -> str:
    rows = [element("li", inert(_shard(shard))) for shard in run.shards]
    return element("section", element("h2", f"{len(rows)} shards") + listed("ul", rows, class_="files"))


def _facts(run: RunReport) -> str:
    rows = [element("div", element("dt", inert(name)) + element("dd", inert(value))) for name, value in run.facts]
    return element("section", element("h2", "Ran on") + listed("dl", rows, class_="facts"))
