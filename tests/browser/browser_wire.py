"""A page behind a real broker, as an agent of the tests uses it."""

from typing import Any

from harness import Agent
from harness.agent import Answered

Arguments = dict[str, Any]


class WirePage:
    """One page that an agent holds; every call goes over the wire."""

    def __init__(self, qa: Agent, named: Arguments, observation: Arguments) -> None:
        self.qa = qa
        self.named = named
        self.opened = observation

    @classmethod
    async def open(cls, qa: Agent, url: str) -> "WirePage":
        """Open a page."""
        done = await qa.do("lomi_browser_open", await qa.revised(url=url))
        names = ("panelId", "browserGeneration", "leaseId", "navigationId")
        named = {"workspaceId": qa.workspace, **{name: done.result[name] for name in names}}
        return cls(qa, named, done.data.get("observation", {}))

    def target(self, *names: str) -> Arguments:
        """The fields that name the page."""
        return {name: self.named[name] for name in ("workspaceId", "panelId", "browserGeneration", *names)}

    async def snapshot(self) -> Arguments:
        """What the page offers."""
        return (await self.qa.ask("lomi_browser_snapshot", **self.target())).data

    async def element(self, name: str, role: str | None = None) -> Arguments:
        """The fields that name one element of a new snapshot."""
        seen = await self.snapshot()
        found = [row for row in seen["elements"] if row["name"] == name and role in (None, row["role"])]
        assert len(found) == 1, seen["elements"]
        return {
            "navigationId": seen["navigationId"],
            "snapshotId": seen["snapshotId"],
            "elementRef": found[0]["elementRef"],
        }

    async def act(self, tool: str, **more: Any) -> Answered:
        """Call one of the acting tools."""
        return await self.qa.call(
            f"lomi_browser_{tool}", {**await self.qa.keyed(), **self.target("leaseId"), "waitMs": 15000, **more}
        )

    async def click(self, name: str, **more: Any) -> Answered:
        """Click an element by its name."""
        return await self.act("click", **await self.element(name), **more)

    async def download(self, url: str, **more: Any) -> Answered:
        """Fetch an address into an artifact; wait for its end, however long."""
        arguments = {**await self.qa.revised(), **self.target(), "url": url, "waitMs": 15000}
        seen = await self.qa.ask("lomi_browser_logs", **self.target())
        said = await self.qa.call("lomi_browser_download", {**arguments, **seen_document(seen), **more})
        return await self.settled(said)

    async def upload(self, name: str, artifact: Arguments, file_name: str, **more: Any) -> Answered:
        """Attach an artifact to a file input by its name."""
        arguments = {
            **await self.qa.revised(),
            **self.target("leaseId"),
            **await self.element(name, "file_input"),
            "frameId": "main",
            "artifactId": artifact["id"],
            "expectedSha256": artifact["sha256"],
            "fileName": file_name,
            "waitMs": 15000,
        }
        return await self.settled(await self.qa.call("lomi_browser_upload", {**arguments, **more}))

    async def settled(self, said: Answered) -> Answered:
        """The receipt once its operation is over."""
        while said.code is None and said.data["state"] in ("queued", "awaiting_user", "running", "cancelling"):
            wait = {"operationId": said.data["operationId"], "waitMs": 55000}
            said = await self.qa.call("lomi_operation_get", wait)
        return said


def seen_document(logs: Answered) -> Arguments:
    """The document that a page of its log was read from."""
    return {"navigationId": logs.data["navigationId"]}
