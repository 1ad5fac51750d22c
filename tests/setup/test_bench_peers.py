"""What a peer of `ci/bench` leaves running when its server has ended is ended, too."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from benches.android_servers import MobileMcp

from lomi.core.processes import name_of

SERVER = """
import json, subprocess, sys
daemon = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
devices = {"devices": [{"id": str(daemon.pid)}]}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = {"content": [{"type": "text", "text": json.dumps(devices)}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_a_daemon_that_outlives_its_server_is_ended(tmp_path: Path) -> None:
    """mobile-mcp starts one in a session of its own: it runs while the server does, and is gone once that is closed."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    peers = SimpleNamespace(mobile_mcp=[sys.executable, str(script)])
    raw = SimpleNamespace(binary=tmp_path / "adb", environment={})
    server = MobileMcp(cast("Any", peers), cast("Any", raw), tmp_path)
    daemon = int(server._device)
    assert name_of(daemon) is not None
    server.close()
    assert name_of(daemon) is None
