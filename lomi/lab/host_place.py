"""What a member of a cluster of hosts keeps in its home, below `cluster/`: key, certificate, where the scheduler is."""

from pathlib import Path

import msgspec

from lomi.disk.private import private_directory, read_private, write_private
from lomi.disk.refusal import DiskRefusedError, Reason

FOLDER = "cluster"
SCHEDULER_NAME = "scheduler"
"""What the scheduler is called among the members; no host can have this name."""
_MOST = 64 << 10


class ClusterAbsentError(Exception):
    """Raised when this home is no member of a cluster; the message says how it becomes one."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a cluster's scheduler is.

    Attributes:
        scheduler: `tls://HOST:PORT`.
        name: what this member is called in the cluster.
    """

    scheduler: str
    name: str


class ClusterPlace:
    """The folder `cluster` of a home. Every call blocks for small reads and writes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / FOLDER
        self.key, self.certificate, self.authority = (
            self.folder / name for name in ("member.key", "member.pem", "authority.pem")
        )

    def open(self) -> None:
        """Make the folder, for this user alone.

        Raises:
            DiskRefusedError: it is another's, or others can write it.
        """
        private_directory(self.folder)

    def keep(self, cluster: Cluster, *, key: bytes, certificate: bytes, authority: bytes) -> None:
        """Become a member: everything at once, the key first."""
        self.open()
        write_private(self.key, key)
        write_private(self.certificate, certificate)
        write_private(self.authority, authority)
        write_private(self.folder / "cluster.json", msgspec.json.encode(cluster))

    def read(self) -> Cluster:
        """Which cluster this is a member of.

        Raises:
            ClusterAbsentError: of none.
        """
        try:
            return msgspec.json.decode(read_private(self.folder / "cluster.json", _MOST), type=Cluster)
        except DiskRefusedError as error:
            if error.reason is Reason.NOT_FOUND:
                raise ClusterAbsentError(
                    f"{self.home} is no member of a cluster; `lomi lab host --join TOKEN` joins one"
                ) from error
            raise ClusterAbsentError(f"{self.folder} can't be read: {error}") from error
        except msgspec.DecodeError as error:
            raise ClusterAbsentError(f"{self.folder}/cluster.json is damaged; join again") from error
