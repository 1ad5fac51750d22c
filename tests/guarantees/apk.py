"""A real APK in the project, imported as an artifact."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from guarantees.examples import Arguments
from guarantees.stage import Actor, Stage


@cache
def _maker() -> Any:
    place = Path(__file__).parents[1] / "devices" / "apk_maker.py"
    spec = importlib.util.spec_from_file_location("apk_maker", place)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


async def imported_apk(stage: Stage, actor: Actor) -> Arguments:
    """The artifact of an app, the same for one actor's life."""
    if "apk" not in actor.kept:
        content = _maker().make_apk("org.example.table")
        (stage.folder(actor) / "table.apk").write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        arguments = await actor.agent.revised(
            relativePath="table.apk", kind="android_apk", expectedByteLength=len(content), expectedSha256=sha256
        )
        imported = await actor.agent.do("lomi_artifact_import", arguments)
        actor.kept["apk"] = {"artifactId": imported.result["artifactId"], "sha256": sha256}
    return dict(actor.kept["apk"])
