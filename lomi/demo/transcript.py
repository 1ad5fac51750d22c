"""The transcript as JSON: every call with arguments, time, receipt and observation; every finding."""

import msgspec

from lomi.demo.record import CallRecord, Picture, Run, Step


def _call(call: CallRecord) -> dict[str, object]:
    shown: dict[str, object] = {
        "number": call.number,
        "tool": call.tool,
        "arguments": call.arguments,
        "startedMs": round(call.started_s * 1000, 1),
        "tookMs": round(call.took_s * 1000, 1),
        "isError": call.is_error,
        "text": call.text,
    }
    if call.receipt is not None:
        shown["receipt"] = {
            "operationId": call.receipt.operation_id,
            "state": call.receipt.state,
            "effectState": call.receipt.effect_state,
        }
    if call.settled is not None:
        shown["observation"] = {"settled": call.settled, "lines": call.observed}
    return shown


def _picture(picture: Picture) -> dict[str, object]:
    return {"side": picture.side, "file": picture.name, "width": picture.width, "height": picture.height}


def _step(step: Step) -> dict[str, object]:
    return {
        "key": step.key,
        "title": step.title,
        "startedMs": round(step.started_s * 1000, 1),
        "tookMs": round(step.took_s * 1000, 1),
        "problem": step.problem,
        "calls": [_call(call) for call in step.calls],
        "pictures": [_picture(picture) for picture in step.pictures.values()],
    }


def transcript(run: Run) -> bytes:
    """The whole run as indented JSON."""
    whole = {
        "format": "lomi-demo-transcript",
        "version": 1,
        "startedAt": run.started_at,
        "totalMs": round(run.total_s * 1000, 1),
        "good": run.good,
        "facts": dict(run.facts),
        "simulated": run.simulated,
        "findings": [
            {
                "key": finding.key,
                "title": finding.title,
                "source": finding.source,
                "expected": finding.expected,
                "found": finding.found,
                "good": finding.good,
            }
            for finding in run.findings
        ],
        "steps": [_step(step) for step in run.steps],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
