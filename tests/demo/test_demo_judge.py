"""The judge counts effects in the records: never, once, twice, and almost."""

import unicodedata

from demo import demo_runs

from emulator_images.paper.screen.lettering import plain
from lomi.demo.judge import judge_calls, judge_end, judge_phone, judge_site
from lomi.demo.plan import ANSWER, EMAIL, NAME
from lomi.demo.record import Finding
from lomi.demo.site import Request

SUBMIT = {"event": "submit", "fields": {"name": NAME, "email": EMAIL, "password": ""}}
WHOLE = [
    {"event": "boot", "boot": 1},
    {"event": "install", "package": "a.b"},
    {"event": "dialog", "button": ANSWER},
    SUBMIT,
]


def good(findings: list[Finding]) -> dict[str, bool]:
    """Verdicts by key."""
    return {finding.key: finding.good for finding in findings}


def test_each_effect_once_is_good() -> None:
    """The journal of a good run."""
    assert all(good(judge_phone(WHOLE, NAME, EMAIL, "a.b")).values())


def test_an_effect_that_is_missing_is_bad() -> None:
    """An empty journal proves nothing."""
    assert not any(good(judge_phone([], NAME, EMAIL, "a.b")).values())


def test_an_effect_that_happened_twice_is_bad() -> None:
    """A repeated boot, install, answer or form is found, each by itself."""
    for number, key in enumerate(("phone-booted", "app-installed", "dialog-answered", "phone-submitted")):
        found = good(judge_phone([*WHOLE, WHOLE[number]], NAME, EMAIL, "a.b"))
        assert [name for name, verdict in found.items() if not verdict] == [key]


def test_text_that_only_looks_the_same_is_bad() -> None:
    """Another spelling of é is not what was typed."""
    other = unicodedata.normalize("NFD", NAME)
    assert other != NAME
    assert not good(judge_phone([{"event": "submit", "fields": {"name": other, "email": EMAIL}}], NAME, EMAIL, ""))[
        "phone-submitted"
    ]


def test_the_web_server_must_have_been_asked_once() -> None:
    """A form that was sent twice, or with other words, is found."""
    once = Request(method="POST", path="/sign-up", fields={"name": NAME, "email": EMAIL, "city": "Paris"})
    popup = Request(method="GET", path="/terms", fields={})
    assert all(good(judge_site([popup, once], NAME, EMAIL)).values())
    assert good(judge_site([once, once], NAME, EMAIL)) == {"popup-opened": False, "page-submitted": False}
    assert not good(judge_site([once], "Zoe", EMAIL))["page-submitted"]


def test_one_receipt_for_two_effects_is_bad() -> None:
    """Each effect has an operation of its own."""
    assert all(good(judge_calls([demo_runs.call(1), demo_runs.call(2)])).values())
    assert not any(good(judge_calls([demo_runs.call(1), demo_runs.call(1)])).values())
    assert not any(good(judge_calls([])).values())


def test_what_is_left_is_named() -> None:
    """A process or file that outlived the broker, and a broker that did not end by itself."""
    assert good(judge_end(0, (), ())) == {"broker-ended": True, "nothing-left": True}
    findings = judge_end(-9, ("process 7 (chromium)",), ("/tmp/x",))
    assert good(findings) == {"broker-ended": False, "nothing-left": False}
    assert findings[1].found == "process 7 (chromium), /tmp/x"


def test_the_phone_can_draw_the_name_that_is_typed_on_it() -> None:
    """The report's first picture shows letters, accents included, and no boxes."""
    assert not NAME.isascii()
    assert "□" not in plain(NAME)
