"""What kind of storage files lie on: its file system, whether it spins, whether it is far away."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PROC, SYS = Path("/proc"), Path("/sys")
_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"}
    | {"orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs"}
    | {"fuse.blobfuse", "fuse.blobfuse2", "fuse.ceph-fuse", "fuse.gcsfuse", "fuse.glusterfs"}
    | {"fuse.goofys", "fuse.juicefs", "fuse.mountpoint-s3", "fuse.rclone", "fuse.s3fs"}
    | {"fuse.sshfs"}
)
_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


@dataclass(frozen=True, kw_only=True)
class Storage:
    """One file system; no path of it is kept."""

    file_system: int
    """Its device number, as samples name it."""
    type: str | None
    network: bool | None
    memory: bool | None
    rotational: bool | None
    """Whether its disk spins; ``None`` where the system does not know."""

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return asdict(self)


def storage(device: int, proc: Path = PROC, sys: Path = SYS) -> Storage:
    """What is known of the file system with this device number (``st_dev``)."""
    kind = _type(device, proc / "self" / "mountinfo")
    return Storage(
        file_system=device,
        type=kind,
        network=None if kind is None else kind in _NETWORK,
        memory=None if kind is None else kind in _MEMORY,
        rotational=_rotational(device, sys),
    )


def network_mounts(proc: Path = PROC) -> list[str]:
    """Types of the network file systems that are mounted here."""
    return sorted({kind for _, kind in _mounts(proc / "self" / "mountinfo") if kind in _NETWORK})


def _type(device: int, mountinfo: Path) -> str | None:
    wanted = f"{os.major(device)}:{os.minor(device)}"
    return next((kind for number, kind in _mounts(mountinfo) if number == wanted), None)


def _mounts(mountinfo: Path) -> list[tuple[str, str]]:
    """Device number and type of every mount."""
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        before, _, after = line.partition(" - ")
        if len(before.split()) > 2 and after:
            found.append((before.split()[2], after.split()[0]))
    return found


def _rotational(device: int, sys: Path) -> bool | None:
    block = sys / "dev" / "block" / f"{os.major(device)}:{os.minor(device)}"
    for folder in (block, block / ".."):  # a partition's queue is its disk's
        try:
            return (folder / "queue" / "rotational").read_text().strip() == "1"
        except OSError:
            continue
    return None
