"""Tool servers as nobody wants them, by the word that they are started with."""

import json
import os
import sys
import time

word = sys.argv[1]
if word == "garbage":
    sys.stdout.buffer.write(b"\xff\xfe\x00 no message \x80\n" * 3)
    sys.stdout.buffer.flush()
if word == "dies":
    os._exit(3)
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
        said = {"result": {"tools": [tool]}}
        if word == "repeats":
            said["result"]["nextCursor"] = "again"
        elif word == "endless":
            said["result"] = {"tools": [], "nextCursor": str(time.monotonic_ns())}
        elif word == "no-list":
            said["result"] = {"tools": "\x1b[2J"}
    elif asked["method"] == "tools/call":
        if word == "hangs-in-call":
            time.sleep(60)
        if word == "dies-in-call":
            os._exit(3)
        if word == "garbage-in-call":
            sys.stdout.buffer.write(b"\x1b[2J \xff no message\n")
            sys.stdout.buffer.flush()
            continue
        said = {"result": {"content": "no list"}}
    else:
        said = {"error": {"code": -32601, "message": "there is no such method"}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}) + "\n")
    sys.stdout.flush()
