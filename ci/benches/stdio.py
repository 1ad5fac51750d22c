"""A stdio MCP server driven by hand, so that no client's cost is in the figures."""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


class BenchFailedError(Exception):
    """Raised when a server ends, refuses or answers what was not expected: a figure of it would mean nothing."""


class Stdio:
    """One server process from spawn to end; ready for calls once made.

    Attributes:
        start_ms: from spawn to the answer of the opening request.
        bytes: length of the newest answer's line.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        modern: bool = False,
    ) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=environment,
            bufsize=0,
        )
        self._command = " ".join(command)[:160]
        self._buffer = b""
        self._number = 0
        self._modern = modern
        self.bytes = 0
        if modern:
            self.ask("server/discover", {})
        else:
            self.ask("initialize", OPENING)
            self._write({"method": "notifications/initialized"})
        self.start_ms = (time.perf_counter() - began) * 1e3

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """One request, answered."""
        self._number += 1
        self._write(
            {"id": self._number, "method": method, "params": {**params, "_meta": META} if self._modern else params}
        )
        assert self.process.stdout is not None
        while True:
            head, end, rest = self._buffer.partition(b"\n")
            if not end:
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise BenchFailedError(f"the server ended: {self._command}")
                self._buffer += chunk
                continue
            self._buffer = rest
            answer: dict[str, Any] = json.loads(head)
            if answer.get("id") == self._number and "method" not in answer:
                self.bytes = len(head)
                return answer

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of one tool call, which must succeed."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer.get("result", {})
        if "error" in answer or result.get("isError"):
            raise BenchFailedError(f"{tool}: {json.dumps(answer)[:800]}")
        return result

    def timed(self, tool: str, /, **arguments: Any) -> float:
        """Milliseconds of one tool call."""
        began = time.perf_counter()
        self.call(tool, **arguments)
        return (time.perf_counter() - began) * 1e3

    def close(self) -> None:
        """Close its stdin and wait for its end; one that stays is killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def text_of(result: Mapping[str, Any]) -> str:
    """The text blocks of a result."""
    return "".join(part.get("text", "") for part in result["content"])
