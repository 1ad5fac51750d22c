"""Examples of the browser tools, in a real Chromium on a local page."""

import hashlib

from guarantees.examples import Arguments, example, other_revision, same_but
from guarantees.stage import Actor, Stage


async def _page(stage: Stage, actor: Actor) -> Arguments:
    """An open page that this actor holds."""
    kept = actor.kept.get("page")
    if kept is None:
        opened = await actor.agent.do("lomi_browser_open", await _open(stage, actor))
        names = ("panelId", "browserGeneration", "leaseId")
        kept = actor.kept["page"] = {
            "workspaceId": actor.agent.workspace,
            **{name: opened.result[name] for name in names},
        }
    return dict(kept)


async def _seen(stage: Stage, actor: Actor, name: str) -> Arguments:
    """The page at a fresh address, and one of its elements in a new snapshot."""
    page = await _page(stage, actor)
    address = f"{stage.site.origin}/#{stage.fresh('tag')}"
    went = {**await actor.agent.keyed(), **page, "url": address}
    await actor.agent.do("lomi_browser_navigate", went)
    looked = {key: value for key, value in page.items() if key != "leaseId"}
    snapshot = (await actor.agent.ask("lomi_browser_snapshot", **looked)).data
    (element,) = [row for row in snapshot["elements"] if row["name"] == name]
    return {
        **await actor.agent.keyed(),
        **page,
        "navigationId": snapshot["navigationId"],
        "snapshotId": snapshot["snapshotId"],
        "elementRef": element["elementRef"],
    }


async def _shared(stage: Stage, actor: Actor) -> Arguments:
    """As `_seen`, on one document and snapshot for all."""
    page = await _page(stage, actor)
    if actor.kept.get("seen", {}).get("panelId") != page["panelId"]:
        actor.kept["seen"] = await _seen(stage, actor, "Count")
    return {**actor.kept["seen"], **await actor.agent.keyed()}


async def _shared_fill(stage: Stage, actor: Actor) -> Arguments:
    return {**await _shared(stage, actor), "text": stage.fresh("text")}


async def _shared_key(stage: Stage, actor: Actor) -> Arguments:
    return {**await _shared(stage, actor), "key": "a"}


async def _shared_scroll(stage: Stage, actor: Actor) -> Arguments:
    seen = await _shared(stage, actor)
    del seen["elementRef"]
    return {**seen, "deltaX": 0, "deltaY": 40}


async def _panels_of(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    return stage.site.count("/", opened=arguments["url"].rpartition("=")[2])


@example("lomi_browser_open", effects=_panels_of, vary=other_revision)
async def _open(stage: Stage, actor: Actor) -> Arguments:
    stage.pages_opened += 1
    return await actor.agent.revised(url=f"{stage.site.origin}/?opened={stage.fresh('page')}")


@example("lomi_browser_navigate", effects=_panels_of, vary=same_but(url="about:blank"))
async def _navigate(stage: Stage, actor: Actor) -> Arguments:
    page = await _page(stage, actor)
    return {**await actor.agent.keyed(), **page, "url": f"{stage.site.origin}/?opened={stage.fresh('page')}"}


async def _reading(stage: Stage, actor: Actor) -> Arguments:
    return {key: value for key, value in (await _page(stage, actor)).items() if key != "leaseId"}


@example("lomi_browser_snapshot")
async def _snapshot(stage: Stage, actor: Actor) -> Arguments:
    return await _reading(stage, actor)


@example("lomi_browser_wait")
async def _wait(stage: Stage, actor: Actor) -> Arguments:
    return {**await _reading(stage, actor), "condition": {"type": "load"}}


@example("lomi_browser_screenshot")
async def _screenshot(stage: Stage, actor: Actor) -> Arguments:
    seen = await _seen(stage, actor, "Count")
    return {**await _reading(stage, actor), "navigationId": seen["navigationId"]}


@example("lomi_browser_logs")
async def _logs(stage: Stage, actor: Actor) -> Arguments:
    return {**await _reading(stage, actor), "logKind": "console"}


@example("lomi_browser_click", vary=same_but(count=2), shared=_shared)
async def _click(stage: Stage, actor: Actor) -> Arguments:
    return await _seen(stage, actor, "Count")


@example("lomi_browser_fill", vary=same_but(text="other"), shared=_shared_fill)
async def _fill(stage: Stage, actor: Actor) -> Arguments:
    return {**await _seen(stage, actor, "Text"), "text": stage.fresh("text")}


@example("lomi_browser_key", vary=same_but(key="b"), shared=_shared_key)
async def _key(stage: Stage, actor: Actor) -> Arguments:
    clicked = await _seen(stage, actor, "Keys")
    await actor.agent.do("lomi_browser_click", clicked)
    looked = {key: clicked[key] for key in ("workspaceId", "panelId", "browserGeneration")}
    snapshot = (await actor.agent.ask("lomi_browser_snapshot", **looked)).data
    (element,) = [row for row in snapshot["elements"] if row["name"] == "Keys"]
    fresh = {"snapshotId": snapshot["snapshotId"], "elementRef": element["elementRef"]}
    return {**clicked, **await actor.agent.keyed(), **fresh, "key": "a"}


@example("lomi_browser_scroll", vary=same_but(deltaY=7), shared=_shared_scroll)
async def _scroll(stage: Stage, actor: Actor) -> Arguments:
    seen = await _seen(stage, actor, "Count")
    del seen["elementRef"]
    return {**seen, "deltaX": 0, "deltaY": 40}


async def _document(stage: Stage, actor: Actor) -> Arguments:
    page = {key: value for key, value in (await _page(stage, actor)).items() if key != "leaseId"}
    logs = (await actor.agent.ask("lomi_browser_logs", **page)).data
    return {**page, "navigationId": logs["navigationId"]}


async def _fetches(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    return stage.site.count("/", fetched=arguments["url"].rpartition("=")[2])


@example("lomi_browser_download", effects=_fetches, vary=same_but(maxBytes=4096))
async def _download(stage: Stage, actor: Actor) -> Arguments:
    await _seen(stage, actor, "Count")
    document = await _document(stage, actor)
    return {**await actor.agent.revised(), **document, "url": f"{stage.site.origin}/?fetched={stage.fresh('file')}"}


@example("lomi_browser_upload", vary=same_but(fileName="other.txt"))
async def _upload(stage: Stage, actor: Actor) -> Arguments:
    content = stage.fresh("content").encode()
    (stage.folder(actor) / "upload.txt").write_bytes(content)
    named = {"kind": "file", "expectedByteLength": len(content), "expectedSha256": hashlib.sha256(content).hexdigest()}
    imported = {**await actor.agent.revised(), **named, "relativePath": "upload.txt"}
    artifact = (await actor.agent.do("lomi_artifact_import", imported)).result["artifactId"]
    return {
        **await _seen(stage, actor, "File"),
        "expectedRevision": await actor.agent.revision(),
        "frameId": "main",
        "artifactId": artifact,
        "expectedSha256": named["expectedSha256"],
        "fileName": "upload.txt",
    }
