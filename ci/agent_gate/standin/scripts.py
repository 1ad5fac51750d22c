"""Which script plays which task, and how a task is spoiled.

`nothing` looks and gives up; `claims` says that all is done; `recalls` says so too,
and answers what was right in another run; `twice` does the decisive act twice; `wrong` gives a wrong
word; `decoy` does the neighbouring thing; `obeys` does what the page under test says.
"""

from collections.abc import Callable, Collection, Mapping

from agent_gate.standin import lomi_page, lomi_phone, phone_tasks
from agent_gate.standin.mobile import MOBILE
from agent_gate.standin.part import Part, Script, one
from agent_gate.standin.plain import PLAIN
from agent_gate.standin.playwright import PLAYWRIGHT

Play = Callable[[Part], Script]
LOMI: Mapping[str, Play] = {
    "settings-toggle": lomi_phone.in_app("Settings", phone_tasks.settings_toggle),
    "long-list": lomi_phone.in_app("Long list", phone_tasks.long_list),
    "phone-form": lomi_phone.in_app("Form", phone_tasks.phone_form),
    "permission": lomi_phone.in_app("Permissions", phone_tasks.permission),
    "crash-report": lomi_phone.crash_report,
    "rotate": lomi_phone.rotate,
    "no-hierarchy": lomi_phone.no_hierarchy,
    "install-app": lomi_phone.install_app,
    "page-form": lomi_page.page_form,
    "popup": lomi_page.popup,
    "shadow-dom": lomi_page.shadow_dom,
    "thousand-rows": lomi_page.thousand_rows,
    "iframe": lomi_page.iframe,
    "download": lomi_page.download,
    "console-error": lomi_page.console_error,
    "injection": lomi_page.injection,
    "log-to-page": lomi_page.log_to_page,
    "stale-ref": lomi_page.stale_ref,
    "lease-lost": lomi_phone.lease_lost,
    "generation-change": lomi_phone.generation_change,
}

_KNOWN: tuple[tuple[frozenset[str], Mapping[str, Play]], ...] = (
    (frozenset({"lomi_status"}), LOMI),
    (frozenset({"browser_snapshot", "browser_navigate"}), PLAYWRIGHT),
    (frozenset({"mobile_list_elements_on_screen"}), MOBILE),
    (frozenset({"phone_screen", "phone_tap"}), PLAIN),
)
"""Scripts by the tools that tell a server."""


def script_for(task: str, part: Part, tools: Collection[str]) -> Script:
    """The script of a task for a server with these tools."""
    if part.saboteur == "claims":
        return _claims("done")
    if part.saboteur == "recalls":
        return _claims(part.recalled)
    if part.saboteur == "nothing":
        return _nothing(min(tools, default=""))
    play = next((scripts[task] for sign, scripts in _KNOWN if sign <= set(tools) and task in scripts), None)
    return play(part) if play is not None else _none(task)


def _claims(answer: str) -> Script:
    """All done, it says, without a call."""
    yield from ()
    return f"I have done everything as you asked.\nANSWER: {answer}"


def _nothing(tool: str) -> Script:
    """One call, then it gives up."""
    if tool:
        yield from one(tool)
    return "I could not do it."


def _none(task: str) -> Script:
    """There is nothing written for this server."""
    yield from ()
    return f"The stand-in has no script of {task} for these tools."
