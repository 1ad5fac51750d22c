"""The policy file as CI users write it."""

from lomi.broker.policy import explain, parse_policy

WRITTEN = """
version = 1
[[device]]
name = "phone-1"
image = "paper-36"
[[client]]
label = "qa"
token_sha256 = "%s"
scopes = ["workspace.read", "panel.create", "panel.focus", "panel.close", "files.read", "artifact.import",
          "android.read", "android.control", "android.interact", "android.observe", "android.capture", "android.launch",
          "android.logs", "android.install",
          "browser.navigate", "browser.read", "browser.interact", "browser.capture_composite"]
workspaces = ["*"]
devices = ["phone-1"]
packages = ["*"]
origins = ["http://127.0.0.1:8000"]
lease_idle_s = 300
decide = ["%s"]
"""


def test_a_decision_is_named_with_and_without_the_prefix_of_the_tools() -> None:
    """`android_install_apk` and `lomi_android_install_apk` are the same decision."""
    for name in ("android_install_apk", "lomi_android_install_apk"):
        policy = parse_policy(WRITTEN % ("0" * 64, name))
        assert policy.client[0].decided_tools() == {"lomi_android_install_apk"}
        assert "  decides itself: lomi_android_install_apk" in explain(policy)
