"""Leases of a phone over the wire, claimed and released far more often than one block of their ids is long."""

from harness import ClientEntry, agent, opened_world, policy_text, rows_of

from lomi.broker.counters import BLOCK

CLAIMS = BLOCK + 2


async def test_a_phone_is_claimed_more_often_than_a_block_of_lease_ids_is_long() -> None:
    """Every claim gives a lease of its own, also once the ids that were at hand at the connect are used up."""
    with opened_world(policy_text(ClientEntry(label="qa", devices=("one",)), phones=("one",))) as world:
        async with agent(world) as client:
            listed = (await client.ask("lomi_android_list", workspaceId=client.workspace)).data
            device = listed["devices"]["items"][0]["deviceId"]
            opened = await client.do("lomi_android_open", await client.revised(deviceId=device))
            target = {"deviceId": device, "panelId": opened.result["panelId"]}
            begun = await client.do("lomi_android_start", await client.revised(**target))
            target["generation"] = begun.result["generation"]
            revision = await client.revision()
            leases = []
            for _ in range(CLAIMS):
                for action in ("claim", "release"):
                    arguments = await client.keyed(expectedRevision=revision, **target, action=action)
                    done = await client.do("lomi_panel_control", arguments)
                    leases += [done.result["leaseId"]] if action == "claim" else []
            assert len(set(leases)) == CLAIMS
            await client.do("lomi_android_stop", await client.revised(**target))
        world.stop()
        rows = [row for row in rows_of(world.home) if row.tool == "lomi_panel_control"]
        assert len(rows) == 2 * CLAIMS
        assert {row.state for row in rows} == {"succeeded"}
