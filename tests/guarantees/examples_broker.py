"""Examples of the broker's own tools."""

import hashlib
import os

from harness.stored import artifacts_with

from guarantees.examples import Arguments, example
from guarantees.stage import Actor, Stage
from lomi.disk.placing import revision_of


@example("lomi_status")
async def _status(stage: Stage, actor: Actor) -> Arguments:
    return {}


@example("lomi_diagnostics")
async def _diagnostics(stage: Stage, actor: Actor) -> Arguments:
    return {}


@example("lomi_connect")
async def _connect(stage: Stage, actor: Actor) -> Arguments:
    return {"workspaceId": actor.agent.workspace}


@example("lomi_events_read")
async def _events(stage: Stage, actor: Actor) -> Arguments:
    return {"workspaceId": actor.agent.workspace}


@example("lomi_workspace_list")
async def _workspaces(stage: Stage, actor: Actor) -> Arguments:
    return {}


async def _named(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    everyone = await stage.actor("bare")
    listed = (await everyone.agent.ask("lomi_workspace_list", limit=500)).data["items"]
    return sum(row["name"] == arguments["name"] for row in listed)


@example("lomi_workspace_create", effects=_named)
async def _create(stage: Stage, actor: Actor) -> Arguments:
    return await actor.agent.revised(name=stage.fresh("made"))


@example("lomi_workspace_update", effects=_named)
async def _update(stage: Stage, actor: Actor) -> Arguments:
    return await actor.agent.revised(name=stage.fresh("renamed"))


async def _opened(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    everyone = await stage.actor("bare")
    listed = (await everyone.agent.ask("lomi_workspace_list", limit=500)).data["items"]
    return sum(row["projectPath"] == arguments["projectPath"] for row in listed)


@example("lomi_project_open", effects=_opened)
async def _open_project(stage: Stage, actor: Actor) -> Arguments:
    folder = stage.world.root / stage.fresh("project")
    folder.mkdir()
    return await actor.agent.revised(projectPath=str(folder), name="extra")


@example("lomi_project_close")
async def _close_project(stage: Stage, actor: Actor) -> Arguments:
    opened = (await actor.agent.do("lomi_project_open", await _open_project(stage, actor))).result
    arguments = await actor.agent.revised(projectId=opened["projectId"])
    return {**arguments, "workspaceId": opened["workspaceId"]}


@example("lomi_panel_list")
async def _panels(stage: Stage, actor: Actor) -> Arguments:
    return {"workspaceId": actor.agent.workspace}


async def _room(stage: Stage, actor: Actor) -> Arguments:
    """A workspace of its own with one panel, a scratch file."""
    made = await actor.agent.do("lomi_workspace_create", await _create(stage, actor))
    workspace = made.result["workspaceId"]
    (panel,) = (await actor.agent.ask("lomi_panel_list", workspaceId=workspace)).data["items"]
    return {"workspaceId": workspace, "panelId": panel["id"], "tabId": panel["tabId"]}


@example("lomi_panel_focus")
async def _focus(stage: Stage, actor: Actor) -> Arguments:
    room = await _room(stage, actor)
    return {**await actor.agent.revised(), "workspaceId": room["workspaceId"], "panelId": room["panelId"]}


@example("lomi_panel_move")
async def _move(stage: Stage, actor: Actor) -> Arguments:
    room = await _room(stage, actor)
    movement = {"type": "transfer_tab", "tabId": room["tabId"], "targetWorkspaceId": actor.agent.workspace}
    return {**await actor.agent.revised(movement=movement), "workspaceId": room["workspaceId"]}


async def _gone(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    everyone = await stage.actor("bare")
    listed = (await everyone.agent.ask("lomi_panel_list", workspaceId=arguments["workspaceId"])).data["items"]
    return int(all(row["id"] != arguments["panelId"] for row in listed))


@example("lomi_panel_close", effects=_gone)
async def _close_panel(stage: Stage, actor: Actor) -> Arguments:
    room = await _room(stage, actor)
    return {**await actor.agent.revised(), "workspaceId": room["workspaceId"], "panelId": room["panelId"]}


async def _made_operation(stage: Stage, actor: Actor) -> str:
    made = await actor.agent.do("lomi_workspace_create", await _create(stage, actor))
    return str(made.data["operationId"])


@example("lomi_operation_get")
async def _get(stage: Stage, actor: Actor) -> Arguments:
    return {"operationId": await _made_operation(stage, actor)}


@example("lomi_operation_cancel")
async def _cancel(stage: Stage, actor: Actor) -> Arguments:
    return {"operationId": await _made_operation(stage, actor)}


async def _imported(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    return artifacts_with(stage.world.home, arguments["expectedSha256"])


@example("lomi_artifact_import", effects=_imported)
async def _import(stage: Stage, actor: Actor) -> Arguments:
    content = stage.fresh("content").encode()
    name = stage.fresh("file") + ".txt"
    (stage.folder(actor) / name).write_bytes(content)
    return await actor.agent.revised(
        relativePath=name,
        kind="file",
        expectedByteLength=len(content),
        expectedSha256=hashlib.sha256(content).hexdigest(),
    )


async def _exported(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    return int((stage.folder(actor) / arguments["relativePath"]).exists())


@example("lomi_artifact_export", effects=_exported)
async def _export(stage: Stage, actor: Actor) -> Arguments:
    given = await _import(stage, actor)
    made = (await actor.agent.do("lomi_artifact_import", given)).result
    folder = stage.folder(actor) / stage.fresh("out")
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        revision = revision_of(descriptor)
    finally:
        os.close(descriptor)
    return await actor.agent.revised(
        artifactId=made["artifactId"],
        expectedSha256=made["sha256"],
        relativePath=f"{folder.name}/copy.txt",
        expectedParentRevision=revision,
    )


@example("lomi_artifact_read")
async def _read_artifact(stage: Stage, actor: Actor) -> Arguments:
    if "artifact" not in actor.kept:
        imported = await actor.agent.do("lomi_artifact_import", await _import(stage, actor))
        actor.kept["artifact"] = {"artifactId": imported.result["artifactId"]}
    return {"workspaceId": actor.agent.workspace, **actor.kept["artifact"]}
