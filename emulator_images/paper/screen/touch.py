"""What a finger does: taps, long presses and swipes on keyboard, dialogs, shade and app."""

import math

from emulator_images.paper.screen import keyboard
from emulator_images.paper.screen.description import Action
from emulator_images.paper.screen.keys import editor_action, enter
from emulator_images.paper.screen.nodes import Node
from emulator_images.paper.screen.stage import Stage
from emulator_images.paper.screen.state import Dialog, Editor, Notification, Placed, placed_items

LONG_PRESS_MILLISECONDS = 500
_SLOP = 16  # pixels a finger may move before a touch becomes a swipe


def gesture(stage: Stage, path: tuple[tuple[int, int], ...], milliseconds: int) -> str:
    """Play one finger's path from down to up; returns the key of what was touched, empty when nothing was."""
    if not stage.awake:
        return ""
    stage.toast = ""
    (x0, y0), (x1, y1) = path[0], path[-1]
    if max(abs(x - x0) for x, _ in path) <= _SLOP and max(abs(y - y0) for _, y in path) <= _SLOP:
        return _press(stage, x0, y0, long=milliseconds >= LONG_PRESS_MILLISECONDS)
    return _swipe(stage, path, x1 - x0, y1 - y0)


def pinch(stage: Stage, paths: tuple[tuple[tuple[int, int], ...], ...]) -> str:
    """Play the paths of several fingers; what they end at in hundredths of where they began is `{scale}`."""
    if not stage.awake or stage.dialog is not None or stage.shade_open:
        return ""
    first, second = paths[0], paths[1]
    began, ended = (math.dist(first[at], second[at]) for at in (0, -1))
    scale = round(100 * ended / max(began, 1.0))
    middle = ((first[0][0] + second[0][0]) // 2, (first[0][1] + second[0][1]) // 2)
    node = stage.app_window().root.hit(*middle)
    stage.around.record(
        "pinch", package=stage.activity.app.package, fingers=len(paths), scale=scale, hit=node.key if node else ""
    )
    if node is None or not node.enabled or stage.activity.app.package in stage.frozen:
        return ""
    if node.look == "canvas":
        stage.activity.strokes.extend(paths)
    placed = next((placed for placed in placed_items(stage.activity.screen) if placed.key == node.key), None)
    if placed is not None:
        for action in placed.item.pinch:
            _act_once(stage, action, action.value.replace("{scale}", str(scale)))
    return node.key


def _swipe(stage: Stage, path: tuple[tuple[int, int], ...], dx: int, dy: int) -> str:
    y0 = path[0][1]
    frame = stage.frame()
    if stage.shade_open:
        if dy < 0:
            stage.shade_open = False
        return "shade"
    if stage.dialog is not None:
        return "dialog"
    if y0 <= frame.px(24) and dy > 0 and abs(dy) > abs(dx):
        stage.shade_open = True
        return "shade"
    activity = stage.activity
    if activity.app.package in stage.frozen:
        return ""
    touched = stage.app_window().root.hit(*path[0])
    if touched is not None and touched.look == "canvas":
        activity.strokes.append(path)
        stage.around.record("stroke", package=activity.app.package, points=len(path))
        return touched.key
    if activity.screen.scroll:
        before = activity.scrolled
        stage.scroll_to(activity.scrolled - dy)
        if activity.scrolled != before:
            stage.around.record("scrolled", package=activity.app.package, offset=activity.scrolled)
    return touched.key if touched else ""


def _press(stage: Stage, x: int, y: int, *, long: bool) -> str:
    board = stage.keyboard_window()
    if stage.dialog is None and not stage.shade_open and board is not None and board.contains(x, y):
        node = board.hit(x, y)
        return _type(stage, node.key) if node else "keyboard"
    node = stage.focused_window().root.hit(x, y)
    if node is None or not node.enabled:
        return ""
    if stage.dialog is not None:
        _answer(stage, stage.dialog, int(node.key.removeprefix("dialog:")))
    elif stage.shade_open:
        _touch_shade(stage, node.key)
    elif stage.activity.app.package in stage.frozen:
        return ""
    elif node.key.startswith("icon:"):
        _launch(stage, node.key.removeprefix("icon:"), by="launcher")
    else:
        _touch_item(stage, node, x, y, long=long)
    return node.key


def _type(stage: Stage, key: str) -> str:
    meaning = keyboard.press(key)
    editor = stage.editor()
    if meaning.action == "shift":
        stage.shifted = not stage.shifted
    elif editor is None:
        return key
    elif meaning.action == "delete":
        editor.delete()
    elif meaning.action == "enter":
        editor_action(stage)
    else:
        enter(stage, meaning.text)
        stage.shifted = False
    return key


def _touch_item(stage: Stage, node: Node, x: int, y: int, *, long: bool) -> None:
    activity = stage.activity
    placed = next((placed for placed in placed_items(activity.screen) if placed.key == node.key), None)
    if placed is None:
        return
    kind = placed.item.kind
    if long and placed.item.hold:
        act(stage, placed, placed.item.hold)
    elif kind == "field":
        if placed.item.clears and activity.focused != placed.key:
            activity.editors.pop(placed.key, None)
        activity.focused = placed.key
        editor = activity.editor(placed.key)
        if long:
            editor.select_all()
        else:
            editor.move(len(editor.text))
        stage.show_keyboard()
    elif kind in {"check", "switch"}:
        activity.checked[placed.key] = not activity.is_checked(placed.key, placed.item)
        act(stage, placed, placed.tap)
    elif kind == "canvas":
        activity.strokes.append(((x, y),))
        stage.around.record("stroke", package=activity.app.package, points=1)
        act(stage, placed, placed.tap)
    else:
        act(stage, placed, placed.tap)


def act(stage: Stage, placed: Placed, actions: tuple[Action, ...]) -> None:
    """Do what an item's description says."""
    for action in actions:
        _act_once(stage, action, action.value.replace("{n}", str(placed.number)))


def _act_once(stage: Stage, action: Action, value: str) -> None:
    package = stage.activity.app.package
    match action.do:
        case "open":
            stage.open(action.target)
        case "back":
            stage.leave()
        case "submit":
            submit(stage)
        case "set":
            stage.activity.texts[action.target] = value
        case "dialog":
            stage.dialog = Dialog("app", package, action.target, value, ("OK", "Cancel"))
        case "permission":
            ask(stage, package, action.target)
        case "launch":
            _launch(stage, action.target, by=package)
        case "notify":
            stage.notifications.insert(0, Notification(package, action.target, value))
        case "toast":
            stage.toast = value
        case "log":
            stage.around.write_log("I", action.target, value, package=package)
        case _:
            _misbehave(stage, action, value)


def _misbehave(stage: Stage, action: Action, value: str) -> None:
    package = stage.activity.app.package
    if action.do == "crash":
        stage.crash(package, value or "paper was told to crash")
    elif action.do == "anr":
        stage.freeze(package)
    elif action.do == "sleep":
        stage.around.sleep_after(float(value or 0))


def _launch(stage: Stage, package: str, *, by: str) -> None:
    app = stage.around.app(package)
    if app is not None:
        stage.around.record("launch", package=package, by=by)
        stage.start(app)


def submit(stage: Stage) -> None:
    """Journal every field and check of the screen, exactly as they are."""
    activity = stage.activity
    fields: dict[str, str] = {}
    checks: dict[str, str] = {}
    for placed in placed_items(activity.screen):
        if placed.item.kind == "field":
            fields[placed.key] = activity.editors.get(placed.key, Editor()).text
        elif placed.item.kind in {"check", "switch"}:
            checks[placed.key] = "on" if activity.is_checked(placed.key, placed.item) else "off"
    stage.around.record(
        "submit", package=activity.app.package, activity=activity.component, fields=fields, checks=checks
    )
    stage.hide_keyboard()


def ask(stage: Stage, package: str, permission: str) -> None:
    """Show the permission question, unless the app already holds it."""
    if stage.around.granted(package, permission):
        return
    app = stage.around.app(package)
    label = app.label if app else package
    name = permission.rsplit(".", 1)[-1].replace("_", " ").lower()
    stage.dialog = Dialog(
        "permission", package, f"Allow {label} to use {name}?", "", ("While using the app", "Don’t allow"), permission
    )


def _answer(stage: Stage, dialog: Dialog, button: int) -> None:
    stage.dialog = None
    stage.around.record("dialog", kind=dialog.kind, package=dialog.package, button=dialog.buttons[button])
    if dialog.kind == "permission":
        stage.around.answer_permission(dialog.package, dialog.permission, allowed=button == 0)
    elif dialog.kind == "anr":
        if button == 0:
            stage.around.died(dialog.package)
            stage.remove(dialog.package)
        else:
            stage.frozen.discard(dialog.package)
    elif dialog.kind == "crash" and button == 0 and (app := stage.around.app(dialog.package)) is not None:
        stage.start(app)


def _touch_shade(stage: Stage, key: str) -> None:
    if key == "shade:clear":
        stage.notifications.clear()
        stage.shade_open = False
        return
    note = stage.notifications.pop(int(key.removeprefix("shade:")))
    stage.shade_open = False
    _launch(stage, note.package, by="notification")
