"""Tool servers as nobody wants them, by the word that they are started with."""

import json
import sys
import time

word = sys.argv[1]
if word == "garbage":
    sys.stdout.buffer.write(b"\xff\xfe\x00 no message \x80\n" * 3)
    sys.stdout.buffer.flush()
for line in sys.stdin:
    asked = json.loads(line)
    if word == "hangs":
        time.sleep(60)
    if word == "garbage" or "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"},
        }
        said = {"result": result}
    elif asked["method"] == "tools/list":
        tool = {"name": "x", "inputSchema": {"type": "object"}}
        said = {"result": {"tools": [tool], "nextCursor": "again"}}
    else:
        said = {"error": {"code": -32601, "message": "there is no such method"}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}) + "\n")
    sys.stdout.flush()
