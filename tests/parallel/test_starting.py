"""What ranks import and read is the caller's own, wherever the caller stands."""

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import WorkloadError
from workbench.parallel import collectives, launchers
from workbench.parallel.carrying import pack, unpack
from workbench.parallel.job import rank_environment
from workbench.parallel.launch import launch
from workbench.parallel.launched import launched


def seen(rank: Any, payload: dict[str, Any]) -> int:
    """Who may do what in the job's folder."""
    return stat.S_IMODE(rank.folder.stat().st_mode)


def stand_beside_an_impostor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose ``json.py`` the caller does not import, since it is not on its path."""
    (folder / "json.py").write_text("raise SystemExit('an impostor was imported')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])


@pytest.mark.slow
def test_ranks_import_nothing_from_the_folder_of_now_and_talk_in_one_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_beside_an_impostor(tmp_path, monkeypatch)
    assert launch(seen, {}, world_size=2, time_limit_s=200) == (0o700, 0o700)


@pytest.mark.slow
def test_nor_do_those_that_measure_collectives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_beside_an_impostor(tmp_path, monkeypatch)
    costs = collectives(backends=("gloo",), kinds=("broadcast",), sizes=(64,), progress=False)
    assert [each.bytes for each in costs.measured] == [64]


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_job_that_others_could_have_written_is_not_read(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(0o700)
    pack(tmp_path, seen, {"a": 1})
    assert unpack(tmp_path)[1] == {"a": 1}
    tmp_path.chmod(mode)
    with pytest.raises(WorkloadError, match=r"written by others.*TMPDIR"):
        unpack(tmp_path)


def test_ranks_do_not_inherit_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    assert launched() is not None
    own = rank_environment(1)
    assert launched(own) is None
    assert "MASTER_PORT" not in own
    assert own["PATH"] == os.environ["PATH"]


def joined(rank: Any, payload: dict[str, Any]) -> float:
    """The sum over all ranks, by a collective."""
    import torch

    rank.join("gloo", 60)
    value = torch.ones(3) * (rank.number + 1)
    torch.distributed.all_reduce(value)
    return float(value[0])


IPV6_ONLY = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "
"""A machine whose only address is ``::1``: what follows sees no IPv4, and no other network."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
def test_ranks_meet_where_there_is_only_ipv6(tmp_path: Path) -> None:
    """1 + 2 = 3; without a network namespace of one's own only the choice of address is tested."""
    alone = ["unshare", "--net", "sh", "-c"]
    tried = subprocess.run([*alone, f"{IPV6_ONLY}true"], capture_output=True, check=False)
    if tried.returncode:  # the programs are there: python -m tests.system sees to it
        pytest.skip(f"the system lets this user make no network namespace: {tried.stderr!r}")
    program = tmp_path / "program.py"
    program.write_text(
        "from tests.parallel.test_starting import joined\n"
        "from workbench.parallel.launch import launch\n"
        "print(launch(joined, {}, world_size=2, time_limit_s=120))\n"
    )
    done = subprocess.run(
        [*alone, f"{IPV6_ONLY}{sys.executable} {program}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout.strip() == "(3.0, 3.0)", done.stderr


def test_the_address_of_ranks_is_one_that_this_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def address() -> str:
        arguments = launchers.torchrun(2, tmp_path).arguments
        return arguments[arguments.index("--local-addr") + 1]

    assert address() == "127.0.0.1"

    class OnlyIPv6(socket.socket):
        def bind(self, address: Any) -> None:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(launchers.socket, "socket", OnlyIPv6)
    assert address() == "::1"
