"""Snapshots, observations and captures as the contract's values."""

from devices.capture import Capture
from devices.hierarchy.snapshots import Element, Snapshot
from devices.observing import Observation as Seen
from devices.phone import Phone
from lomi.contract.android import AndroidNode, AndroidSnapshot, AndroidSnapshotInput, DeviceView, Phase
from lomi.contract.artifact import AndroidGeometry
from lomi.contract.model import Observation
from lomi.core.port import Reply

_MOST_EDGE = 1600
_HINTS_UNTOLD = "this release's hierarchy does not tell a field's hint from its value: `filled or hint`"
_PHASES: dict[str, Phase] = {"offline": "failed"}


def device_view(phone: Phone, generation: str | None) -> DeviceView:
    """One row of the list."""
    display = phone.spec.display
    phase: Phase = _PHASES.get(phone.phase) or phone.phase  # type: ignore[assignment]
    return DeviceView(
        device_id=phone.spec.device_id,
        name=phone.spec.title,
        generation=generation,
        phase=phase,
        process_alive=phone.process_alive,
        display=(display.width, display.height) if phone.running else None,
        simulated=phone.spec.simulated,
    )


def _node(element: Element) -> AndroidNode:
    return AndroidNode(
        id=element.id,
        parent=element.parent,
        class_=element.class_name,
        resource_id=element.resource_id,
        package=element.package,
        description=element.description,
        text=element.text,
        bounds=element.bounds,
        enabled=element.enabled,
        clickable=element.clickable,
        focused=element.focused,
        scrollable=element.scrollable,
        checked=element.checked,
        value_omitted=element.value_omitted,
    )


def _fitting(elements: tuple[Element, ...], most_bytes: int) -> tuple[AndroidNode, ...]:
    """As many nodes from the start as fit the byte budget; about 64 bytes a node go to names and numbers."""
    kept: list[AndroidNode] = []
    size = 0
    for element in elements:
        texts = (element.class_name, element.resource_id, element.package, element.description, element.text)
        size += 256 + sum(len(text.encode()) for text in texts)
        if size > most_bytes:
            break
        kept.append(_node(element))
    return tuple(kept)


def _limits_of(snapshot: Snapshot | None) -> tuple[str, ...]:
    """What the hierarchy itself leaves open."""
    return (_HINTS_UNTOLD,) if snapshot is not None and snapshot.tree.values_unclear else ()


def snapshot_reply(snapshot: Snapshot, given: AndroidSnapshotInput, limitations: tuple[str, ...]) -> Reply:
    """A snapshot in the form that was asked for; the text is always the outline."""
    outline = snapshot.outline(query=given.query or "")
    nodes: tuple[AndroidNode, ...] = ()
    truncated = False
    if given.form != "outline":
        elements, truncated = snapshot.elements(max_nodes=given.max_nodes, query=given.query or "")
        nodes = _fitting(elements, given.max_bytes)
        truncated = truncated or len(nodes) < len(elements)
    display = snapshot.screen.display
    data = AndroidSnapshot(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        device_id=given.device_id,
        generation=given.generation,
        snapshot_id=snapshot.id,
        captured_at_millis=str(snapshot.taken_ms),
        hardware_display=(display.width, display.height),
        rotation=snapshot.screen.rotation,  # type: ignore[arg-type]
        nodes=nodes,
        omitted=outline.omitted if given.form == "outline" else 0,
        truncated=truncated or (given.form == "outline" and outline.omitted > 0),
        limitations=limitations + _limits_of(snapshot),
    )
    return Reply(data=data, text=f"snapshotId {snapshot.id}\n{outline.text}")


def observation(seen: Seen) -> Observation:
    """What was seen after an act."""
    return Observation(
        settled=seen.settled,
        lines=tuple(line for line in seen.text.splitlines() if line != "settled: false"),
        snapshot_id=seen.snapshot.id if seen.snapshot else None,
        focused=seen.focus.label,
        limitations=_limits_of(seen.snapshot),
    )


def kept_picture(capture: Capture) -> tuple[bytes, AndroidGeometry]:
    """The picture that is stored: the full one where the contract's bounds admit it, else the bounded one."""
    full = capture.full
    chosen = full if max(full.width, full.height) <= _MOST_EDGE else capture.bounded
    display = capture.screen.display
    return chosen.png, AndroidGeometry(
        width=chosen.width,
        height=chosen.height,
        hardware_width=display.width,
        hardware_height=display.height,
        rotation=capture.screen.rotation,
        image_to_hardware=capture.screen.image_to_hardware(chosen.width, chosen.height),
    )


def capture_text(capture: Capture) -> str:
    """What a model must know of the picture that it sees."""
    seen = capture.bounded
    a, b, c, d, tx, ty = capture.image_to_hardware
    lines = [
        f"picture {seen.width}x{seen.height}, rotation {capture.screen.rotation}",
        f"hardware x = {a:g}*u + {c:g}*v + {tx:g}, y = {b:g}*u + {d:g}*v + {ty:g}",
    ]
    if capture.uniform:
        lines.append("every pixel has the same colour")
    lines += [f"the device said: {line}" for line in seen.warnings or capture.full.warnings]
    return "\n".join(lines)
