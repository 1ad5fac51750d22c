"""Downloads and uploads through MCP's client, a real broker and a real Chromium, equal by hash on both ends."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_files import FileSite, serving_files, sha256
from browser_wire import WirePage
from harness import ALL_SCOPES, ClientEntry, World, agent, opened_world, policy_text, until

MIB = 1 << 20
TOKEN = "upload-token"


@pytest.fixture(scope="module")
def site() -> Iterator[FileSite]:
    """A server of files."""
    with serving_files() as made:
        yield made


@pytest.fixture(scope="module")
def world(site: FileSite) -> Iterator[World]:
    """A broker whose policy decides on uploads of one client and not of the other."""
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    common = {"scopes": ALL_SCOPES, "origins": (site.origin,), "token_sha256": token}
    deciding = ClientEntry(label="qa", decide=("lomi_browser_upload",), **common)  # type: ignore[arg-type]
    with opened_world(policy_text(deciding, ClientEntry(label="undecided", **common))) as made:  # type: ignore[arg-type]
        yield made


def peak_bytes(pid: int) -> int:
    """The most memory that a process has held since its mark was last cleared."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def clear_peak(pid: int) -> None:
    """Begin to measure anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


@pytest.mark.parametrize(
    "size", [64 * MIB, pytest.param(512 * MIB, marks=[pytest.mark.deep, pytest.mark.timeout(600)])]
)
async def test_a_large_file_goes_both_ways_equal_by_hash_and_not_through_memory(
    world: World, site: FileSite, size: int
) -> None:
    """From the server into an artifact, from the artifact into a form, from the form to the server: same hash."""
    wanted = sha256(size)
    async with agent(world, token=TOKEN) as qa:
        page = await WirePage.open(qa, site.origin + "/")
        pid = world.live.pid
        clear_peak(pid)
        before = peak_bytes(pid)
        done = await page.download(f"{site.origin}/file?size={size}", large=True)
        assert done.short == "receipt succeeded/complete", done.raw
        artifact = done.result["artifact"]
        assert (artifact["byteLength"], artifact["sha256"]) == (size, wanted)
        up = await page.upload("Attachment", artifact, "big.bin")
        assert up.short == "receipt succeeded/complete", up.raw
        assert up.result["target"]["origin"] == site.origin
        await page.click("Send", waitMs=0)
        await until(lambda: ("big.bin", size, wanted) in site.taken, seconds=300)
        assert peak_bytes(pid) - before < 48 * MIB


async def test_small_files_and_the_bounds_of_a_download(world: World, site: FileSite) -> None:
    """The inline bound is exact; redirects, other origins and absent files are told apart; nothing is kept of them."""
    async with agent(world, token=TOKEN) as qa:
        page = await WirePage.open(qa, site.origin + "/")
        exact = await page.download(f"{site.origin}/file?size={4 * MIB}")
        assert exact.result["artifact"]["sha256"] == sha256(4 * MIB)
        assert (await page.download(f"{site.origin}/file?size=0")).result["artifact"]["byteLength"] == 0
        for url, more, said in (
            (f"/file?size={4 * MIB + 1}", {}, "receipt failed/partial ARTIFACT_TOO_LARGE (too_large)"),
            ("/file?size=11", {"maxBytes": 10}, "receipt failed/partial ARTIFACT_TOO_LARGE (too_large)"),
            ("/moved", {}, "receipt failed/partial UNSUPPORTED_CAPABILITY (redirect_refused)"),
            ("/none", {}, "receipt failed/partial TARGET_NOT_FOUND (status_refused)"),
        ):
            assert (await page.download(site.origin + url, **more)).short == said, url
        assert (await page.download("http://127.0.0.1:9/x")).short == "SCOPE_DENIED (origin_not_granted)"
        assert (await page.download("about:blank")).short == "receipt failed/none SCOPE_DENIED (cross_origin)"


async def test_a_large_file_takes_only_the_room_that_its_length_needs(site: FileSite) -> None:
    """Where 64 MiB are free, large files and downloads of the page that fit are stored; a longer one is refused."""
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    client = ClientEntry(label="qa", scopes=ALL_SCOPES, origins=(site.origin,), token_sha256=token)
    with opened_world(policy_text(client, limits={"artifact_owner_bytes": 64 * MIB})) as small:
        async with agent(small, token=TOKEN) as qa:
            page = await WirePage.open(qa, site.origin + "/")
            for size in (0, MIB, 40 * MIB):
                kept = await page.download(f"{site.origin}/file?size={size}", large=True)
                assert kept.result["artifact"]["sha256"] == sha256(size), kept.raw
            over = await page.download(f"{site.origin}/file?size={24 * MIB}", large=True)
            assert over.short == "receipt failed/partial RESOURCE_EXHAUSTED (quota_full)"
            clicked = await page.click("Get")
            said = next(line for line in clicked.data["observation"]["lines"] if line.startswith("download "))
            begun = await page.download("about:blank", downloadId=said.split()[1])
            assert begun.result["artifact"]["byteLength"] == 70_000, begun.raw


async def test_an_upload_is_bound_to_what_was_decided(world: World, site: FileSite) -> None:
    """Other bytes, another class, another frame, or nobody who decides: refused, and nothing attached."""
    (world.project / "a.txt").write_bytes(b"hello")
    digest = hashlib.sha256(b"hello").hexdigest()
    for label, wanted in (
        ("undecided", "receipt cancelled/none SCOPE_DENIED"),
        ("qa", "receipt succeeded/complete"),
    ):
        async with agent(world, label, token=TOKEN) as qa:
            page = await WirePage.open(qa, site.origin + "/")
            imported = {"relativePath": "a.txt", "kind": "file", "expectedByteLength": 5, "expectedSha256": digest}
            result = (await qa.do("lomi_artifact_import", await qa.revised(**imported))).result
            artifact = {"id": result["artifactId"], "sha256": digest}
            for more, said in (
                ({"expectedSha256": "0" * 64}, "ARTIFACT_INVALID (hash_mismatch)"),
                ({"frameId": "f1"}, "STALE_SNAPSHOT (stale_ref)"),
                ({"artifactId": "0" * 32}, "TARGET_NOT_FOUND"),
            ):
                assert said in (await page.upload("Other", artifact, "a.txt", **more)).short, more
            done = await page.upload("Other", artifact, "räport.txt")
            assert done.short.startswith(wanted)
            picked = await page.act("click", **await page.element("Send"))
            assert picked.short == "receipt succeeded/complete"
    assert done.result["target"]["label"] == "Other"
    assert done.result["fileName"] == "räport.txt"


async def test_a_large_project_file_is_imported_only_where_large_is_said(world: World) -> None:
    """The bound of 4 MiB stands; `large` lifts it for what is to be uploaded."""
    content = bytes(4 * MIB + 1)
    (world.project / "big.bin").write_bytes(content)
    async with agent(world, token=TOKEN) as qa:
        named = {
            "relativePath": "big.bin",
            "kind": "file",
            "expectedByteLength": len(content),
            "expectedSha256": hashlib.sha256(content).hexdigest(),
        }
        small = await qa.call("lomi_artifact_import", await qa.revised(**named))
        assert small.short == "RESOURCE_EXHAUSTED (out_of_range)"
        large = await qa.do("lomi_artifact_import", await qa.revised(**named, large=True))
        assert large.result["byteLength"] == len(content)
