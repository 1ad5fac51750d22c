"""Names on a snapshot: one thing, or an error that says what there is."""

import pytest

from lomi.client.errors import ERROR_OF, ToolError
from lomi.client.names import (
    NameAbsentError,
    NameAmbiguousError,
    ResourceId,
    Role,
    StillThereError,
    Text,
    View,
    page_view,
    phone_view,
)
from lomi.contract.android import AndroidNode, AndroidSnapshot
from lomi.contract.browser import BrowserSnapshot, PageElement, Viewport
from lomi.contract.codes import ErrorCode


def node(
    number: int, kind: str, *, text: str = "", about: str = "", name: str = "", parent: int | None = None, clicks: bool
) -> AndroidNode:
    """A node of a hierarchy."""
    return AndroidNode(
        id=number,
        parent=parent,
        class_=f"android.widget.{kind}",
        resource_id=f"org.example:id/{name}" if name else "",
        package="org.example",
        description=about,
        text=text,
        bounds=(0, 0, 10, 10),
        enabled=True,
        clickable=clicks,
        focused=False,
        scrollable=False,
        checked=False,
        value_omitted=False,
    )


def phone(*nodes: AndroidNode) -> View[AndroidNode]:
    """A phone that shows these nodes."""
    snapshot = AndroidSnapshot(
        workspace_id="w1",
        panel_id="p1",
        device_id="d",
        generation="g",
        snapshot_id="s1",
        captured_at_millis="0",
        hardware_display=(720, 1280),
        rotation=0,
        nodes=nodes,
        truncated=False,
        limitations=(),
    )
    return phone_view("phone-1", snapshot)


def page(*elements: tuple[str, str, bool]) -> View[PageElement]:
    """A page that shows elements of these roles and names, editable or not."""
    snapshot = BrowserSnapshot(
        workspace_id="w1",
        panel_id="p1",
        browser_generation="b1",
        navigation_id="b1:1",
        snapshot_id="s1",
        origin="http://example.org",
        url="http://example.org/",
        captured_at="",
        viewport=Viewport(width=100, height=100, device_scale_factor=1),
        frames=(),
        elements=tuple(
            PageElement(
                frame_id="main",
                element_ref=f"main-e{number}",
                role=role,
                name=name,
                enabled=True,
                editable=editable,
                checked=None,
                value_length=None,
            )
            for number, (role, name, editable) in enumerate(elements, 1)
        ),
        truncated=False,
        omitted_frames=0,
        limitations=(),
    )
    return page_view(snapshot.url, snapshot)


def test_a_string_is_an_exact_text_before_an_id_before_another_case() -> None:
    """`Send` leads to the text Send though an id and another text spell it in another case."""
    nodes = (
        node(1, "TextView", text="SEND", clicks=False),
        node(2, "Button", text="Go", name="Send", clicks=True),
        node(3, "Button", text="Send", clicks=True),
    )
    assert phone(*nodes).one("Send")[0].ref == "3"
    assert phone(*nodes[:2]).one("Send")[0].ref == "2"
    assert phone(nodes[0]).one("send")[0].ref == "1"
    assert phone(node(4, "EditText", name="first_name", clicks=True)).one("First name")[0].ref == "4"


def test_what_takes_the_touch_is_meant_where_a_text_lies_inside_of_it() -> None:
    """A row that takes clicks, with the same text inside: the row; of mere texts in one another the innermost."""
    row = node(1, "LinearLayout", about="Wi-Fi", clicks=True)
    label = node(2, "TextView", text="Wi-Fi", parent=1, clicks=False)
    assert phone(row, label).one("Wi-Fi")[0].ref == "1"
    box = node(1, "FrameLayout", about="Wi-Fi", clicks=False)
    assert phone(box, label).one("Wi-Fi")[0].ref == "2"


def test_what_is_ambiguous_names_every_candidate() -> None:
    """Two buttons of one text: an error that lists both, and a role or an id that tells them apart."""
    first = node(1, "Button", text="OK", name="yes", clicks=True)
    second = node(2, "CheckBox", text="OK", name="no", clicks=True)
    with pytest.raises(NameAmbiguousError) as raised:
        phone(first, second).one("OK")
    assert raised.value.candidates == ("button 'OK' id='yes'", "checkbox 'OK' id='no'")
    assert phone(first, second).one(Role("checkbox", "OK"))[0].ref == "2"
    assert phone(first, second).one(ResourceId("yes"))[0].ref == "1"


def test_what_is_absent_names_what_is_there() -> None:
    """An error lists what can be named instead, at most twenty lines of it, and says how many more there are."""
    buttons = [node(number, "Button", text=f"B{number}", clicks=True) for number in range(30)]
    with pytest.raises(NameAbsentError, match="and 10 more") as raised:
        phone(*buttons).one("C")
    assert len(raised.value.candidates) == 20
    with pytest.raises(NameAbsentError):
        phone(*buttons).one(Text("b"))
    with pytest.raises(NameAmbiguousError):
        phone(*buttons).one(Text("b", exact=False))


def test_something_that_should_be_gone_and_is_not_is_named() -> None:
    """`none` accepts absence, and lists what is still there."""
    view = phone(node(1, "TextView", text="Loading", clicks=False))
    view.none("Done")
    with pytest.raises(StillThereError, match="still shows 'Loading'"):
        view.none("Loading")


def test_a_label_does_not_make_its_field_ambiguous() -> None:
    """Label, field and heading of one name: typing goes to the field, a click to what takes clicks."""
    view = page(
        ("heading", "Name", False), ("label", "Name", False), ("textbox", "Name", True), ("link", "Home", False)
    )
    assert view.one("Name", typing=True)[1].role == "textbox"
    assert view.one("Name")[1].role == "textbox"
    assert view.one(Role("label", "Name"))[1].role == "label"


@pytest.mark.parametrize("code", list(ErrorCode))
def test_each_code_is_one_class(code: ErrorCode) -> None:
    """Every code of the contract has a class of its own, with reason and hint."""
    raised = ERROR_OF[code](code, "said", reason="because", hint="Do that.")
    assert isinstance(raised, ToolError)
    assert type(raised) is not ToolError
    assert [kind for kind in ERROR_OF.values() if isinstance(raised, kind)] == [type(raised)]
    assert (raised.code, raised.reason, raised.hint, raised.__notes__) == (code, "because", "Do that.", ["Do that."])
