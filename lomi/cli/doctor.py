"""`lomi doctor`: looks at everything at once, in about two seconds, and names the cure of each finding."""

import os
import queue
import sys
import threading
import time

import click
import msgspec

from lomi.cli.checks import home, machine, programs
from lomi.cli.checks.finding import LONGER, Finding, Look, Place
from lomi.cli.shown import printable

LOOKS: tuple[tuple[str, Look], ...] = (
    ("python", machine.python),
    ("chromium", programs.chromium),
    ("adb", programs.adb),
    ("sdk", programs.sdk),
    ("kvm", machine.kvm),
    ("memory", machine.memory),
    ("disk", machine.disk),
    ("ports", machine.ports),
    ("home", home.home),
    ("store", home.store),
    ("preferences", home.preferences),
    ("sockets", home.sockets),
    ("leftovers", home.leftovers),
)


@click.command()
@click.option(
    "--within", type=click.FloatRange(0.1, 600), default=2.0, show_default=True, metavar="SECONDS", help="Patience."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(within: float, as_json: bool) -> None:
    """Look for what is missing or broken. Exits 1 when something keeps Lomi from working."""
    from lomi.disk.home import state_home

    begun = time.monotonic()
    found = look(Place(home=state_home(os.environ), environment=dict(os.environ), patience_s=within))
    bad = any(finding.state == "problem" for finding in found)
    if as_json:
        said = {"ok": not bad, "seconds": round(time.monotonic() - begun, 3), "findings": found}
        click.echo(msgspec.json.encode(said).decode())
    else:
        click.echo("\n".join(lines_of(found)))
    sys.stdout.flush()
    # A look that hangs in the kernel would hold the process up at its end.
    os._exit(1 if bad else 0)


def look(place: Place) -> list[Finding]:
    """Look at everything at once; what has not answered in time is said to be unknown."""
    answers: queue.SimpleQueue[tuple[str, tuple[Finding, ...]]] = queue.SimpleQueue()

    def run(name: str, one: Look) -> None:
        try:
            answers.put((name, one(place)))
        except OSError as error:
            said = f"can't be looked at: {error.strerror or type(error).__name__}"
            answers.put((name, (Finding(name=name, state="warning", said=said, cure="lomi doctor --json"),)))

    for name, one in LOOKS:
        threading.Thread(target=run, args=(name, one), daemon=True).start()
    end = time.monotonic() + place.patience_s
    found: dict[str, tuple[Finding, ...]] = {}
    while len(found) < len(LOOKS):
        try:
            name, findings = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[name] = findings
    late = f"gave no answer within {place.patience_s:g} s"
    absent = {name: (Finding(name=name, state="warning", said=late, cure=LONGER),) for name, _ in LOOKS}
    return [finding for name, _ in LOOKS for finding in found.get(name, absent[name])]


def lines_of(found: list[Finding]) -> list[str]:
    """The findings for a person."""
    lines = []
    for finding in found:
        lines.append(f"{finding.state:8} {finding.name:12} {printable(finding.said)}")
        if finding.cure is not None:
            lines.append(f"{'':8} {'':12} -> {printable(finding.cure)}")
    return lines
