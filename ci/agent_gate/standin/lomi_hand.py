"""Lomi's tools as a script uses them: everything it knows it reads from the texts that a model reads."""

import re

from agent_gate.standin.part import Call, LostError, Seen, Steps, one


class GoneError(LostError):
    """Raised when this life of the phone is over."""


LOOKS = 30
"""How many snapshots a script waits for something to appear."""
GONE = ("STALE_GENERATION", "phone_gone", "OUTCOME_UNKNOWN", "APP_UNAVAILABLE")


def word(text: str, name: str) -> str:
    """The value that follows a name, as in `leaseId l1, ready True`.

    Raises:
        LostError: the name is not there.
    """
    found = re.search(rf"\b{name}:? ([^\s,]+)", text)
    if found is None:
        raise LostError(f"no {name} in: {text[:200]}")
    return found[1]


class Session:
    """A session: its epoch, its newest revision, its keys."""

    def __init__(self) -> None:
        self.workspace = self._epoch = ""
        self._revision = "0"
        self._keys = 0

    def begin(self) -> Steps[None]:
        """The three calls with which each session starts; two of them in one turn."""
        _, listed = yield [Call("lomi_status"), Call("lomi_workspace_list")]
        self.workspace = word(listed.text, "id")
        self._learn(listed)
        connected = yield from one("lomi_connect", workspaceId=self.workspace)
        self._epoch = word(connected.text, "retryEpoch")

    def _learn(self, seen: Seen) -> None:
        found = re.findall(r"\bdomainRevision:? (\d+)", seen.text)
        self._revision = found[-1] if found else self._revision

    def read(self, tool: str, **arguments: object) -> Steps[Seen]:
        """A call that only looks."""
        return (yield from one(tool, workspaceId=self.workspace, **arguments))

    def sequenced(self, tool: str, **arguments: object) -> Steps[Seen]:
        """A call whose retry identity is in its own arguments."""
        return (yield from self.read(tool, retryEpoch=self._epoch, **arguments))

    def keyed(self, tool: str, **arguments: object) -> Steps[Seen]:
        """A call under a request key of its own."""
        self._keys += 1
        seen = yield from self.sequenced(tool, requestKey=f"key-{self._keys}", waitMs=15000, **arguments)
        self._learn(seen)
        return seen

    def revised(self, tool: str, **arguments: object) -> Steps[Seen]:
        """A call against the newest revision."""
        return (yield from self.keyed(tool, expectedRevision=self._revision, **arguments))


class Phone:
    """The phone: found by name, opened, started, claimed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sequence = 0
        self._lease = self._generation = self._device = self._panel = ""
        self.seen = Seen(text="")

    def begin(self) -> Steps[None]:
        """Open, start, claim."""
        listed = yield from self._session.read("lomi_android_list")
        found = re.search(r"^\S+ ([0-9a-f-]{36}):", listed.text, re.MULTILINE)
        if found is None:
            raise LostError(f"no phone in: {listed.text[:200]}")
        self._device = found[1]
        opened = yield from self._session.revised("lomi_android_open", deviceId=self._device)
        self._panel = word(opened.text, "panelId")
        yield from self.start()
        yield from self.claim()

    @property
    def target(self) -> dict[str, object]:
        """The arguments that name this life of the phone."""
        return {"panelId": self._panel, "deviceId": self._device, "generation": self._generation}

    def start(self) -> Steps[None]:
        """Boot it; its generation is this boot."""
        started = yield from self._session.revised("lomi_android_start", panelId=self._panel, deviceId=self._device)
        self._generation = word(started.text, "generation")

    def claim(self) -> Steps[None]:
        """Take the lease; its inputs are counted anew."""
        claimed = yield from self._session.revised("lomi_panel_control", **self.target, action="claim")
        self._lease, self._sequence = word(claimed.text, "leaseId"), 0

    def launch(self, package: str) -> Steps[Seen]:
        """Launch an app."""
        return (yield from self._session.revised("lomi_android_launch", **self.target, packageName=package))

    def look(self) -> Steps[Seen]:
        """A snapshot."""
        self.seen = yield from self._session.read("lomi_android_snapshot", **self.target)
        self._alive()
        return self.seen

    def _alive(self) -> None:
        if any(code in self.seen.text for code in GONE):
            raise GoneError(self.seen.text[:200])

    def find(self, text: str) -> Steps[tuple[str, str]]:
        """Look until an element with exactly this text is there; the snapshot's id and the element's ref."""
        wanted = re.compile(rf'^\s*\[(\d+)\] [^"]*"{re.escape(text)}"', re.MULTILINE)
        for _ in range(LOOKS):
            seen = yield from self.look()
            found = wanted.search(seen.text)
            if found is not None:
                return word(seen.text, "snapshotId"), found[1]
        raise LostError(f"the phone does not show {text!r}")

    def tap(self, text: str) -> Steps[Seen]:
        """Find an element and tap it."""
        snapshot, ref = yield from self.find(text)
        return (yield from self.act({"type": "tap", "at": {"snapshotId": snapshot, "ref": ref}}))

    def tap_at(self, x: int, y: int) -> Steps[Seen]:
        """Tap a point, in hardware pixels."""
        return (yield from self.act({"type": "tap", "at": {"space": "hardware_display", "x": x, "y": y}}))

    def write(self, label: str, text: str) -> Steps[Seen]:
        """Tap a field and type."""
        yield from self.tap(label)
        return (yield from self.act({"type": "text", "text": text}))

    def swipe_up(self) -> Steps[Seen]:
        """Show more of a list."""
        low, high = ({"space": "hardware_display", "x": 360, "y": y} for y in (1000, 500))
        return (yield from self.act({"type": "swipe", "from": low, "to": high, "durationMs": 300}))

    def act(self, event: dict[str, object]) -> Steps[Seen]:
        """One input event; once more, claimed anew, where the lease was gone."""
        yield from self._send(event)
        if "CONTROL_REVOKED" in self.seen.text:
            yield from self.claim()
            yield from self._send(event)
        self._alive()
        return self.seen

    def _send(self, event: dict[str, object]) -> Steps[None]:
        self._sequence += 1
        self.seen = yield from self._session.sequenced(
            "lomi_android_input",
            **self.target,
            leaseId=self._lease,
            inputSequence=str(self._sequence),
            event=event,
        )

    def log(self, package: str) -> Steps[Seen]:
        """Recent lines of an app's log."""
        return (
            yield from self._session.read(
                "lomi_android_logcat", **self.target, packageName=package, minPriority="V", limit=64
            )
        )

    def picture(self) -> Steps[Seen]:
        """A picture of the display."""
        return (yield from self._session.read("lomi_android_screenshot", **self.target))


class Page:
    """A page with its lease."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._panel = self._generation = self._lease = ""
        self.seen = Seen(text="")

    def open(self, url: str) -> Steps[Seen]:
        """Open it."""
        self.seen = yield from self.session.revised("lomi_browser_open", url=url)
        self._panel = word(self.seen.text, "panelId")
        self._generation = word(self.seen.text, "browserGeneration")
        self._lease = word(self.seen.text, "leaseId")
        return self.seen

    def popup(self, clicked: Seen) -> "Page":
        """The page that a click opened.

        Raises:
            LostError: there is none.
        """
        found = re.search(r"popup: panelId (\S+), browserGeneration (\S+), leaseId (\S+)", clicked.text)
        if found is None:
            raise LostError(f"no popup in: {clicked.text[:300]}")
        other = Page(self.session)
        other._panel, other._generation, other._lease = found[1], found[2], found[3].rstrip(",")
        return other

    @property
    def target(self) -> dict[str, object]:
        """The arguments that name this page."""
        return {"panelId": self._panel, "browserGeneration": self._generation}

    def look(self, query: str = "") -> Steps[Seen]:
        """A snapshot, of what fits the query where one is given."""
        more: dict[str, object] = {"query": query} if query else {}
        self.seen = yield from self.session.read("lomi_browser_snapshot", **self.target, maxNodes=500, **more)
        return self.seen

    def find(self, role: str, name: str, query: str = "") -> Steps[dict[str, object]]:
        """Look until an element is there; the arguments that name it."""
        wanted = re.compile(rf'^\s*(\S+) {role} "{re.escape(name)}"', re.MULTILINE)
        for _ in range(LOOKS):
            seen = yield from self.look(query)
            found = wanted.search(seen.text)
            if found is not None:
                return {"elementRef": found[1], **self._shown(seen)}
        raise LostError(f"the page does not show {role} {name!r}: {self.seen.text[:1500]}")

    @staticmethod
    def _shown(seen: Seen) -> dict[str, object]:
        named = re.search(r"^(s\d+) ", seen.text, re.MULTILINE)
        if named is None:
            raise LostError(f"no snapshot in: {seen.text[:200]}")
        return {"snapshotId": named[1], "navigationId": word(seen.text, "navigationId")}

    def act(self, tool: str, element: dict[str, object], **more: object) -> Steps[Seen]:
        """Do something to a found element."""
        return (yield from self.session.keyed(tool, **self.target, leaseId=self._lease, **element, **more))

    def click(self, role: str, name: str, query: str = "") -> Steps[Seen]:
        """Find and click."""
        element = yield from self.find(role, name, query)
        return (yield from self.act("lomi_browser_click", element))

    def check(self, name: str) -> Steps[Seen]:
        """Find a checkbox and set it."""
        element = yield from self.find("checkbox", name)
        return (yield from self.act("lomi_browser_click", element, checked=True))

    def fill(self, role: str, name: str, text: str) -> Steps[Seen]:
        """Find a field and replace its value."""
        element = yield from self.find(role, name)
        return (yield from self.act("lomi_browser_fill", element, text=text))

    def keep(self, clicked: Seen) -> Steps[Seen]:
        """Store the download that a click began."""
        found = re.search(r"download (x\d+)", clicked.text)
        if found is None:
            raise LostError(f"no download in: {clicked.text[:300]}")
        seen = yield from self.look()
        shown = self._shown(seen)
        return (
            yield from self.session.revised(
                "lomi_browser_download",
                **self.target,
                navigationId=shown["navigationId"],
                url="about:blank",
                downloadId=found[1],
            )
        )

    def wait(self, text: str) -> Steps[Seen]:
        """Wait until a text is there."""
        return (
            yield from self.session.read("lomi_browser_wait", **self.target, condition={"type": "text", "text": text})
        )

    def log(self, kind: str) -> Steps[Seen]:
        """What the page's scripts complained of."""
        return (yield from self.session.read("lomi_browser_logs", **self.target, logKind=kind))
