"""Google's own SDK code, an old release that Debian packages: what it makes of a repository, where it is installed."""

import os
import shutil
import subprocess
from pathlib import Path

_JARS = Path("/usr/share/java")
_NEEDED = ("com.android.tools.sdklib.jar", "com.android.tools.repository.jar", "jaxb-runtime.jar")
_SOURCE = """
import com.android.repository.api.*;
import com.android.repository.io.FileOpUtils;
import com.android.sdklib.repository.AndroidSdkHandler;
import com.android.sdklib.repository.legacy.LegacyDownloader;
import java.io.File;

public class Oracle {
    public static void main(String[] words) {
        ProgressIndicator progress = new ConsoleProgressIndicator();
        RepoManager manager = AndroidSdkHandler.getInstance(new File(words[0])).getSdkManager(progress);
        SettingsController settings = new SettingsController() {
            public boolean getForceHttp() { return false; }
            public void setForceHttp(boolean force) { }
            public Channel getChannel() { return Channel.create(3); }
        };
        manager.loadSynchronously(0, progress, new LegacyDownloader(FileOpUtils.create()), settings);
        for (LocalPackage one : manager.getPackages().getLocalPackages().values())
            System.out.println("local\\t" + one.getPath() + "\\t" + one.getVersion() + "\\t-");
        for (RemotePackage one : manager.getPackages().getRemotePackages().values())
            System.out.println("remote\\t" + one.getPath() + "\\t" + one.getVersion()
                + "\\t" + (one.getLicense() == null ? "-" : one.getLicense().getLicenseHash()));
    }
}
"""


def missing() -> str | None:
    """What stands in the way; None when it can be asked."""
    absent = [name for name in _NEEDED if not (_JARS / name).exists()]
    if absent:
        return f"no {', '.join(absent)} in {_JARS} (Debian: libandroid-tools-sdklib-java, libjaxb-java)"
    return None if shutil.which("javac") else "no javac (a JDK)"


def ask(work: Path, sdk: Path, mirror: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Kind (`local`, `remote`) and path of each package that Google's code sees, with version and licence hash."""
    jars = ":".join(str(path) for path in sorted(_JARS.glob("*.jar")) if "maven" not in path.name)
    (work / "Oracle.java").write_text(_SOURCE)
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "SDK_TEST_BASE_URL": mirror}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=work, env=environment, capture_output=True, text=True, timeout=50, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("javac", "-cp", jars, "Oracle.java")
    rows = [line.split("\t") for line in run("java", "-cp", f"{jars}:.", "Oracle", str(sdk)).splitlines()]
    return {(row[0], row[1]): (row[2], row[3]) for row in rows if len(row) == 4}
