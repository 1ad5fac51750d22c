"""The steps that a run is counted against, in order: a step that was not reached is reported as such."""

from typing import NamedTuple


class Planned(NamedTuple):
    """One step of the plan."""

    key: str
    title: str
    told: str


FORM = "lomi.paper.form"
ASKING = "lomi.paper.permissions"
ANSWER = "While using the app"
APK = "app.apk"
NAME = "Zoë Åström"
"""In letters that every font has, the simulated phone's own too, so that each picture shows what was typed."""
EMAIL = "zoe@example.org"
PLAN = (
    Planned("broker", "Start a broker", "lomi up, headless, with a policy made for this run."),
    Planned(
        "connect", "Connect", "The agent's host starts lomi mcp; the agent proves the token that the policy names."
    ),
    Planned("boot", "Boot a phone", "A simulated phone starts as a process of its own; real adb talks to it."),
    Planned("page", "Open a page", "A page of a web server on this machine, in real headless Chromium."),
    Planned(
        "install",
        "Install an app",
        "Imported by its hash; the policy decides; the receipt says what the installer said.",
    ),
    Planned("launch", "Launch it", "The simulated phone shows a labelled placeholder: it runs no code of an APK."),
    Planned("dialog", "Meet a dialog", "An app asks for the camera; the agent sees the question and answers it."),
    Planned(
        "popup",
        "Follow a popup",
        "A link opens a second window; it is inside the grant, so it becomes a panel of its own.",
    ),
    Planned("phone-form", "Fill a form on the phone", f"The name is {NAME}, accents included."),
    Planned("phone-submit", "Submit it, read the log", "One tap. The phone's own journal is asked afterwards."),
    Planned("page-form", "Fill the same form on the page", "Trusted input, as from a keyboard and a mouse."),
    Planned("page-submit", "Send it", "One click. The web server's own log is asked afterwards."),
    Planned("end", "End phone and page", "The lease is given back, the page closed, the phone stopped."),
    Planned("down", "Stop the broker", "Everything that it started ends with it."),
)
