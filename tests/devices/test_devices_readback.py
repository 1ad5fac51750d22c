"""What a typed text may be said to have become, from two looks at the fields: no fault may pass for success."""

from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from devices import readback
from devices.focus import Focus
from devices.geometry import Screen
from devices.hierarchy.identity import Sight
from devices.hierarchy.snapshots import Snapshot
from devices.hierarchy.tree import read_dump
from devices.spec import Display

HINT, OTHER = "Name", "Town"
WORDS = st.text("ab1 -", min_size=1, max_size=6)


def look(
    *fields: tuple[str, bool], hint: str | None = HINT, password: bool = False, named: bool = True, top: int = 0
) -> Snapshot:
    """A screen of fields, each with its text and whether it has the focus; the first has `hint`, None of old dumps."""
    parts = []
    for number, (text, focused) in enumerate(fields):
        told = (OTHER if number and hint else hint) if hint is not None else None
        shown = text or told or ""
        parts.append(
            f'<node class="android.widget.EditText" package="app" text={quoteattr(shown, {chr(10): "&#10;"})} '
            f'resource-id="{f"app:id/f{number}" if named else ""}" '
            f'bounds="[0,{top + number * 90}][720,{top + number * 90 + 90}]" '
            f'focused="{str(focused).lower()}" password="{str(password and number == 0).lower()}" '
            + (f"hint={quoteattr(told)}/>" if told is not None else "/>")
        )
    body = '<node class="L" package="app" bounds="[0,0][720,1280]">' + "".join(parts) + "</node>"
    tree = read_dump(f"<hierarchy rotation='0'>{body}</hierarchy>".encode())
    return Snapshot(
        id="s1", generation="g", sight=Sight(tree), refs=tuple(range(1, len(tree.nodes) + 1)),
        focus=Focus("activity", "app", "app.Main"), screen=Screen(Display(720, 1280, 320), 0), taken_ms=0, at=0.0,
        frames=None,
    )  # fmt: skip


def verdict(was: str, now: str, words: str, *, hint: str | None = HINT) -> readback.Verdict:
    """Of one field that has the focus."""
    return readback.judged(look((was, True), hint=hint), look((now, True), hint=hint), words)


@pytest.mark.parametrize(
    ("was", "words", "now", "said"),
    [
        ("", "Ada", "Ada", "held"),
        ("Ada", " L", "Ada L", "held"),
        ("held", "ello, h", "hello, held", "held"),
        ("old", "new", "new", "held"),
        ("see the old one", "new", "see the new one", "held"),
        ("", "a\nb", "a\nb", "held"),
        ("Ada", "Ada", "Ada", "unclear"),
        ("", "Ada", "", "unclear"),
        ("", "Name", "Name", "unclear"),
        ("hello", "hello world", "hello world", "unclear"),
        ("", "abcdef", "abcd", "partly"),
        ("x", "abcdef", "xace", "partly"),
        ("", "loud", "LOUD", "partly"),
        ("555-1", "234", "555-123-4", "partly"),
        ("hello", "hell no", "hell", "other"),
        ("", "teh", "the", "other"),
        ("", "bell\x07", "bell.", "unreadable"),
    ],
)
def test_a_field_is_compared_before_and_after(was: str, words: str, now: str, said: str) -> None:
    """At the caret, over a selection, cut, altered, there before, replaced by something else."""
    assert verdict(was, now, words) == said


@pytest.mark.parametrize(("now", "said"), [("Ada", "held"), ("Ad", "partly"), ("Name", "unclear")])
def test_an_old_dump_s_text_may_be_the_hint(now: str, said: str) -> None:
    """Where hints are not told apart, what was there may be one that the first character drives out."""
    assert verdict("Name", now, "Ada", hint=None) == said


def test_focus_that_moves_is_followed_to_the_field_that_took_the_words() -> None:
    """Words in a neighbour, or shared out: partly. A field that takes the focus late and holds them: held."""
    before = look(("", True), ("", False))
    assert readback.judged(before, look(("", False), ("abcd", True)), "abcd") == "partly"
    assert readback.judged(before, look(("ab", False), ("cd", True)), "abcd") == "partly"
    assert readback.judged(before, look(("", False), ("kept", True)), "abcd") == "unclear"
    unfocused = look(("", False), ("", False))
    assert readback.judged(unfocused, look(("abcd", True), ("", False)), "abcd") == "held"
    assert readback.judged(unfocused, look(("abcd", False), ("", False)), "abcd") == "unreadable"
    assert not readback.can_be_read(look(("", True), password=True))


def test_fields_that_nothing_names_are_told_apart_by_their_places_or_not_at_all() -> None:
    """Two fields without id and hint, as toolkits draw them: held by the one typed into; unreadable once they moved."""
    before = look(("same", False), ("same", True), hint="", named=False)
    after = look(("same", False), ("same too", True), hint="", named=False)
    assert readback.judged(before, after, " too") == "held"
    other = look(("same too", False), ("same", True), hint="", named=False)
    assert readback.judged(before, other, " too") == "partly"
    moved = look(("same", False), ("same too", True), hint="", named=False, top=40)
    assert readback.judged(before, moved, " too") == "unreadable"


@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS, st.data())
def test_swallowed_keys_never_pass_for_the_whole_text(was: str, words: str, data: st.DataObject) -> None:
    """Whatever part of the words arrives, wherever the caret stands: it is not called held."""
    at = data.draw(st.integers(0, len(was)))
    kept = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    assume(not all(kept))
    part = "".join(char for char, stays in zip(words, kept, strict=True) if stays)
    assert verdict(was, was[:at] + part + was[at:], words, hint="?") != "held"


@settings(max_examples=100, deadline=None)
@given(WORDS, WORDS, st.data())
def test_the_whole_text_at_any_caret_is_held(was: str, words: str, data: st.DataObject) -> None:
    """Put in whole, it counts, whatever was there."""
    at = data.draw(st.integers(0, len(was)))
    assert verdict(was, was[:at] + words + was[at:], words, hint="?") == "held"


def test_long_and_repetitive_texts_are_judged_soon() -> None:
    """The longest text over the most ambiguous field takes no time that anybody would notice."""
    many = "a" * 8000
    assert verdict(many, many + many, many) == "held"
    assert verdict(many, many + many[:-1], many) == "unclear"
