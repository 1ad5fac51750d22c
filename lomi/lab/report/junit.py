"""JUnit XML as other parsers read it: one case for each planned test, whatever became of it."""

from datetime import UTC, datetime
from xml.etree import ElementTree as Xml

from lomi.lab.report.model import RunReport, TestReport
from lomi.report.xml_text import legal


def junit(run: RunReport) -> bytes:
    """The document. `tests` is the plan's count; skipped are tests that skipped themselves or are in quarantine."""
    suite = Xml.Element("testsuite", name=legal(run.name))
    counts = {"failures": 0, "errors": 0, "skipped": 0}
    for test in run.tests:
        kind = _case(suite, test)
        if kind:
            counts[kind] += 1
    suite.set("tests", str(len(run.tests)))
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{run.wall_s:.3f}")
    suite.set("timestamp", datetime.fromtimestamp(run.began, UTC).replace(tzinfo=None).isoformat("T", "seconds"))
    suite.set("hostname", legal(" ".join(sorted({shard.host for shard in run.shards if shard.host}))) or "local")
    suites = Xml.Element("testsuites", {name: value for name, value in suite.items() if name not in _OF_ONE_SUITE})
    suites.append(suite)
    Xml.indent(suites)
    whole: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


_OF_ONE_SUITE = ("timestamp", "hostname", "skipped")


def name_of(test: TestReport) -> tuple[str, str]:
    """Class name and name of a test, as pytest's own JUnit files have them."""
    path, *names = test.id.partition("[")[0].split("::")
    parameters = test.id.removeprefix(test.id.partition("[")[0])
    classes = [path.removesuffix(".py").replace("/", "."), *names[:-1]]
    return ".".join(classes), (names[-1] if names else path) + parameters


def _case(suite: Xml.Element, test: TestReport) -> str | None:
    """Add one case; the count that it belongs to."""
    classname, name = name_of(test)
    case = Xml.SubElement(
        suite, "testcase", classname=legal(classname), name=legal(name), time=f"{max(0.0, test.seconds):.3f}"
    )
    kind = _verdict(case, test)
    told = _told(test)
    if told:
        Xml.SubElement(case, "system-out").text = legal(told)
    return kind


def _verdict(case: Xml.Element, test: TestReport) -> str | None:
    last = test.attempts[-1] if test.attempts else None
    reason = test.why if not last else last.reason or test.why
    if test.state == "passed":
        return None
    if test.skipped or not test.decides:
        said = reason if test.decides else f"in quarantine ({test.quarantine}); it ended as {test.state}: {reason}"
        Xml.SubElement(case, "skipped", message=legal(said))
        return "skipped"
    tag, kind = ("failure", "failures") if test.state == "failed" else ("error", "errors")
    found = Xml.SubElement(case, tag, message=legal(reason), type=test.state)
    found.text = legal("\n\n".join(text for text in (last.detail if last else "", test.why) if text) or reason)
    return kind


def _told(test: TestReport) -> str:
    """What every attempt came to, and what was printed while it failed."""
    if len(test.attempts) < 2 and not any(attempt.output for attempt in test.attempts):
        return ""
    parts: list[str] = []
    for attempt in test.attempts:
        where = f" on {', '.join(attempt.phones)}" if attempt.phones else ""
        parts.append(f"attempt {attempt.attempt}{where}: {attempt.verdict} {attempt.reason}".rstrip())
        parts += [attempt.detail] if attempt is not test.attempts[-1] and attempt.detail else []
        parts += [attempt.output] if attempt.output else []
    return "\n".join(parts)
