"""Examples of the terminal tools, in a real bash."""

from typing import Any

from harness import until

from guarantees.examples import Arguments, example, same_but
from guarantees.stage import Actor, Stage

PROOF = "proof.txt"


async def terminal_of(stage: Stage, actor: Actor) -> Arguments:
    """A terminal at an idle prompt that this actor holds."""
    kept = actor.kept.get("terminal")
    if kept is None:
        created = await actor.agent.do("lomi_terminal_create", await _create(stage, actor))
        names = ("panelId", "terminalSessionId", "leaseId")
        kept = actor.kept["terminal"] = {
            "workspaceId": actor.agent.workspace,
            **{name: created.result[name] for name in names},
        }
    await _at_prompt(actor, kept)
    return dict(kept)


async def _at_prompt(actor: Actor, terminal: dict[str, Any]) -> None:
    """Wait until the shell has done all that was typed, and shows its prompt."""
    named = {name: terminal[name] for name in ("workspaceId", "panelId", "terminalSessionId")}

    async def ready() -> bool:
        return (await actor.agent.ask("lomi_terminal_read", **named)).data["prompt"] == "ready"

    await until(ready)


def _lines(stage: Stage, actor: Actor, word: str) -> int:
    proof = stage.folder(actor) / PROOF
    return proof.read_text().split().count(word) if proof.exists() else 0


async def _panels_titled(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    listed = (await actor.agent.ask("lomi_panel_list", workspaceId=arguments["workspaceId"], limit=500)).data["items"]
    return sum(row["title"] == arguments["title"] for row in listed)


@example("lomi_terminal_create", effects=_panels_titled, fleeting=True)
async def _create(stage: Stage, actor: Actor) -> Arguments:
    return await actor.agent.revised(cwdRelative="", title=stage.fresh("shell"))


@example("lomi_terminal_read")
async def _read(stage: Stage, actor: Actor) -> Arguments:
    terminal = await terminal_of(stage, actor)
    return {name: value for name, value in terminal.items() if name != "leaseId"}


async def _ran(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    return _lines(stage, actor, arguments["command"].split()[1])


async def _lasting_run(stage: Stage, actor: Actor) -> Arguments:
    arguments = await _run(stage, actor)
    return {**arguments, "command": arguments["command"] + "; sleep 300"}


@example("lomi_terminal_run", effects=_ran, vary=same_but(command="echo other"), lasting=_lasting_run)
async def _run(stage: Stage, actor: Actor) -> Arguments:
    terminal = await terminal_of(stage, actor)
    return {**await actor.agent.keyed(), **terminal, "command": f"echo {stage.fresh('ran')} >> {PROOF}"}


async def _typed(stage: Stage, actor: Actor, arguments: Arguments) -> int:
    await _at_prompt(actor, arguments)
    return _lines(stage, actor, arguments["input"]["text"].split()[1])


def _other_text(arguments: Arguments) -> Arguments:
    return {**arguments, "input": {"type": "text", "text": "other"}}


async def _next_sequence(actor: Actor, terminal: dict[str, Any]) -> str:
    named = {name: value for name, value in terminal.items() if name != "leaseId"}
    return str((await actor.agent.ask("lomi_terminal_read", **named)).data["nextInputSequence"])


@example("lomi_terminal_input", effects=_typed, vary=_other_text, ahead=("lomi_terminal_run", _run))
async def _input(stage: Stage, actor: Actor) -> Arguments:
    terminal = await terminal_of(stage, actor)
    text = f"echo {stage.fresh('typed')} >> {PROOF}\r"
    sequence = await _next_sequence(actor, terminal)
    return {**terminal, "inputSequence": sequence, "input": {"type": "text", "text": text}}


@example("lomi_terminal_interrupt", vary=same_but(operationId="0" * 40))
async def _interrupt(stage: Stage, actor: Actor) -> Arguments:
    terminal = await terminal_of(stage, actor)
    ran = await actor.agent.do("lomi_terminal_run", {**await actor.agent.keyed(), **terminal, "command": "true"})
    return {**await actor.agent.keyed(), **await terminal_of(stage, actor), "operationId": ran.data["operationId"]}


async def _releasing(stage: Stage, actor: Actor) -> Arguments:
    terminal = await terminal_of(stage, actor)
    del terminal["leaseId"]
    return {**await actor.agent.keyed(), **terminal, "action": "release"}


@example("lomi_panel_control", vary=same_but(action="claim"), shared=_releasing)
async def _control(stage: Stage, actor: Actor) -> Arguments:
    arguments = await _releasing(stage, actor)
    actor.kept.pop("terminal")
    return arguments
