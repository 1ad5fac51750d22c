"""The short rendering and the key names: pure, so every odd text can be tried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser.errors import RefusedError, StaleRefError
from browser.keys import require_known
from browser.network import without_credentials
from browser.pending import bounded
from browser.snapshot.outline import found_outline, node_line, quoted
from browser.snapshot.refs import MOST_REFS, Refs
from browser.values import Found, Node

ANYTHING = st.text(st.characters(), max_size=300)


@given(ANYTHING)
def test_a_name_is_one_quoted_line_whatever_it_holds(name: str) -> None:
    """No text can end its line or its quotes, or hide itself by control or bidi characters."""
    line = quoted(name)
    assert line.splitlines() == [line]
    assert line.isprintable() or all(c.isprintable() or c in "\u200d " or c.isspace() for c in line)
    inner = line[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inner
    assert not any(ord(c) < 32 or 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in line)


@given(st.lists(ANYTHING, max_size=60))
def test_an_outline_keeps_its_budget(names: list[str]) -> None:
    """However long and many the names, the bytes stay within the budget and the rest is counted."""
    nodes = tuple(Node(ref=f"main-e{i}", frame="main", role="button", name=name) for i, name in enumerate(names))
    text = found_outline(Found("s1", nodes, len(nodes), cut=False), budget=1000)
    assert len(text.encode("utf-8", "replace")) <= 1000
    shown = sum(line.startswith("main-e") for line in text.splitlines())
    assert shown == len(nodes) or f"not shown: {len(nodes) - shown}" in text


@given(ANYTHING, st.integers(1, 40))
def test_page_text_is_cut_by_utf_16_units_and_made_whole(text: str, most: int) -> None:
    """Cutting never leaves half a pair, and never more units than asked."""
    cut = bounded(text, most)
    assert len(cut.encode("utf-16-le")) // 2 <= most
    cut.encode("utf-8")


def test_states_are_told_in_words() -> None:
    """A line holds ref, role, name and only the states that matter."""
    node = Node(
        ref="f1-e7",
        frame="f1",
        role="combobox",
        name="Pet",
        enabled=False,
        required=True,
        value_length=3,
        name_unseen=True,
        options=("Cat", "Dog"),
        option_count=9,
    )
    assert node_line(node) == 'f1-e7 combobox ~"Pet" [disabled, required, 3 chars] options: "Cat", "Dog" +7'


@pytest.mark.parametrize(
    "chord", ["Enter", "a", "Z", "+", "Control+A", "Control+Shift+Home", "Shift++", "F12", "Shift", " "]
)
def test_known_keys(chord: str) -> None:
    """Names, single characters and chords of them can be pressed."""
    require_known(chord)


@pytest.mark.parametrize(
    "chord", ["", "NoSuchKey", "Control+", "A+Control+B", "é", "Control+Nope", "enter", "F13", "a\n"]
)
def test_unknown_keys(chord: str) -> None:
    """Everything else is refused before a modifier is held."""
    with pytest.raises(RefusedError):
        require_known(chord)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host/x?a=1#frag", "https://host/x?a=1"),
        ("http://h/?access_token=s3cret&page=2", "http://h/?access_token=...&page=2"),
        ("data:text/html,secret", "data:text/html"),
        ("blob:http://h/1", "blob:http://h/1"),
    ],
)
def test_listed_addresses_hold_no_credentials(url: str, shown: str) -> None:
    """User information, fragments and secret query values are left out."""
    assert without_credentials(url) == shown


def test_refs_are_bounded_and_the_oldest_go_first() -> None:
    """A page that shows new nodes for ever keeps a bounded number of refs, the last ones shown."""
    refs = Refs()
    for start in range(0, MOST_REFS + 1000, 500):
        shown = [Node(ref=f"main-e{start + i}", frame="main", role="button", name="") for i in range(500)]
        refs.admit("main", "d1", shown, start + 500)
    assert refs.resolve(f"main-e{MOST_REFS + 499}", None) == ("main", MOST_REFS + 499, "d1")
    assert refs.base("main") == MOST_REFS + 1000
    with pytest.raises(StaleRefError):
        refs.resolve("main-e0", None)
    refs.forget_documents(["d2"])
    with pytest.raises(StaleRefError):
        refs.resolve(f"main-e{MOST_REFS + 499}", None)
