"""Reads of phones: list, snapshot, capture, log."""

from typing import Any

from devices.phone import Phone
from devices.port import views
from devices.port.faults import reading
from devices.port.lives import Lives
from devices.port.sdk_room import SdkRoom
from devices.port.videos import AndroidVideos
from lomi.contract.android import (
    AndroidDevices,
    AndroidListInput,
    AndroidLogcat,
    AndroidLogcatInput,
    AndroidScreenshotInput,
    AndroidSnapshotInput,
    Devices,
)
from lomi.contract.artifact import AndroidSource, ArtifactFound
from lomi.core.port import Call, Ledger, Picture, Reply, ResourceKey


class AndroidReads:
    """Handlers that observe."""

    def __init__(self, lives: Lives, room: SdkRoom, ledger: Ledger, videos: AndroidVideos) -> None:
        self._videos = videos
        self._room = room
        self._lives = lives
        self._ledger = ledger

    def _phone(self, call: Call[Any]) -> Phone:
        return self._lives.phone(call.input.device_id)

    async def list(self, call: Call[AndroidListInput]) -> Reply:
        """The granted phones."""
        seen = [phone for phone in self._lives.phones() if call.grant.admits_device(phone.spec.device_id)]
        rows = tuple(
            views.device_view(phone, self._ledger.current(ResourceKey("android", phone.spec.device_id)))
            for phone in seen
        )
        devices = Devices(devices_revision=self._room.wire_revision() or "0", host_qualified=True, items=rows)
        lines = [
            f"{row.name} {row.device_id}: {row.phase}"
            + (f", generation {row.generation}" if row.generation else "")
            + (", SIMULATED" if row.simulated else "")
            for row in rows
        ]
        return Reply(
            data=AndroidDevices(workspace_id=call.input.workspace_id, devices=devices),
            text="\n".join(lines) or "no phones are granted",
        )

    async def snapshot(self, call: Call[AndroidSnapshotInput]) -> Reply:
        """The hierarchy."""
        phone = self._phone(call)
        with reading():
            seen = await phone.eyes.snapshot(generation=call.input.generation)
        return views.snapshot_reply(seen, call.input, self._lives.limitations(phone))

    async def screenshot(self, call: Call[AndroidScreenshotInput]) -> Reply:
        """The picture: stored as an artifact, bounded beside the reply; or a video."""
        given, phone = call.input, self._phone(call)
        source = AndroidSource(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            device_id=given.device_id,
            generation=given.generation,
        )
        if given.video is not None:
            return await self._videos.video(call, phone, source)
        with reading():
            capture = await phone.eyes.capture(
                max_edge=given.max_edge, max_bytes=given.max_bytes, generation=given.generation
            )
        png, geometry = views.kept_picture(capture)
        stored = await self._ledger.artifacts.put_image(call, png, source, geometry)
        return Reply(
            data=ArtifactFound(artifact=stored.wire),
            text=views.capture_text(capture) + f"\nartifactId {stored.id}",
            pictures=(Picture("image/png", capture.bounded.png),),
        )

    async def logcat(self, call: Call[AndroidLogcatInput]) -> Reply:
        """A page of one app's log."""
        given, phone = call.input, self._phone(call)
        with reading():
            page = await phone.logs.page(
                given.package_name,
                priority=given.min_priority,
                limit=given.limit,
                cursor=given.cursor,
                generation=given.generation,
            )
        log = AndroidLogcat(
            workspace_id=given.workspace_id,
            device_id=given.device_id,
            generation=given.generation,
            package_name=given.package_name,
            process_id=page.process_id,
            lines=page.lines,
            next_cursor=page.next_cursor,
            truncated=page.truncated,
        )
        words = "\n".join(page.lines) or "no lines of that priority"
        ended = f"process {page.process_id} of {page.package} has ended: its last lines, then the crash log's\n"
        return Reply(data=log, text=ended + words if page.ended else words)
