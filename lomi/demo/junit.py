"""The run as JUnit XML: one case a planned step, one a finding. What was not reached is skipped, never passed."""

from xml.etree import ElementTree as Xml

from lomi.demo.plan import PLAN
from lomi.demo.record import Run
from lomi.report.xml_text import legal


def _failed(case: Xml.Element, message: str) -> None:
    Xml.SubElement(case, "failure", message=legal(message), type="demo")


def junit(run: Run) -> bytes:
    """The XML document."""
    suite = Xml.Element("testsuite", name="lomi demo", timestamp=run.started_at.removesuffix("+00:00"))
    by_key = {step.key: step for step in run.steps}
    failed = skipped = 0
    for planned in PLAN:
        step = by_key.get(planned.key)
        took = 0.0 if step is None else step.took_s
        case = Xml.SubElement(suite, "testcase", classname="demo.steps", name=legal(planned.title), time=f"{took:.3f}")
        if step is None:
            skipped += 1
            Xml.SubElement(case, "skipped", message="not reached")
        elif step.problem is not None:
            failed += 1
            _failed(case, step.problem)
    for finding in run.findings:
        case = Xml.SubElement(suite, "testcase", classname="demo.findings", name=legal(finding.title), time="0.000")
        if not finding.good:
            failed += 1
            _failed(case, f"{finding.source} says {finding.found}; expected {finding.expected}")
    suite.set("tests", str(len(PLAN) + len(run.findings)))
    suite.set("failures", str(failed))
    suite.set("errors", "0")
    suite.set("skipped", str(skipped))
    suite.set("time", f"{run.total_s:.3f}")
    suites = Xml.Element("testsuites", name="lomi demo")
    suites.append(suite)
    Xml.indent(suites)
    whole: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"
