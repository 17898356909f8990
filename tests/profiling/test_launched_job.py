"""A capture in a job that somebody launched: each rank takes part, one Run shows all of them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import RunError, SettingError
from workbench.store.folder import read_record

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
LOOP = """
import sys
import torch
import workbench as wb

with wb.capture(sys.argv[1], steps=2, ranks=eval(sys.argv[2])) as cap:
    for batch in cap.watch([torch.ones(8)] * 8):
        (batch * 2).sum()
        with cap.range("rest"):
            cap.step()
"""


def as_rank(monkeypatch: pytest.MonkeyPatch, rank: int, *, size: int = 2, job: str = "a") -> None:
    for name, value in {"RANK": rank, "WORLD_SIZE": size, "TORCHELASTIC_RUN_ID": job}.items():
        monkeypatch.setenv(name, str(value))


def captured(folder: Path, ranks: tuple[int, ...] | None = None) -> wb.Run:
    import torch

    with wb.capture(folder, steps=2, ranks=ranks) as cap:
        for batch in cap.watch([torch.ones(8)] * 8):
            (batch * 2).sum()
            cap.step()
    return cap.run


def test_ranks_one_after_the_other_are_one_run_and_a_second_job_goes_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    for job in ("a", "b"):
        for rank in (0, 1):
            as_rank(monkeypatch, rank, job=job)
            captured(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "mine-2"]
    for name in ("mine", "mine-2"):
        run = wb.open(tmp_path / name)
        assert [rank.rank for rank in run.ranks] == [0, 1]
        assert run.kind == "measured"
        (said,) = run.notes
        if name == "mine":
            assert said.endswith(f"the newest one lies in {tmp_path / 'mine-2'}")
        else:
            assert said.startswith("'mine' was there already: the ranks of this job are called")
        assert run.steps is not None
        assert run.steps.groupby("rank").size().tolist() == [2, 2]
    record = read_record(folder / "rank1")
    assert record.traces == ["rank1.trace.json.gz"]
    assert (record.effective["world_size"], record.effective["launched_by"]) == (2, "torchrun")


def test_samples_of_all_ranks_are_counted_only_where_the_sampler_says_who_gets_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of 4, of 2 ranks with a part of the data each: 8.

    Ranks of tensor parallel see the same 4, which a plain sampler does not tell.
    """
    from torch.utils.data import DataLoader, DistributedSampler

    data: Any = list(range(64))
    apart = DistributedSampler(data, num_replicas=2, rank=0)
    as_rank(monkeypatch, 0)
    for sampler, samples in ((apart, 8.0), (None, None)):
        with wb.capture(tmp_path / str(samples), steps=2) as cap:
            for batch in cap.watch(DataLoader(data, batch_size=4, sampler=sampler)):
                (batch * 2).sum()
                cap.step()
        assert cap.run.record.samples_per_step == samples
        unknown = [note for note in cap.run.record.notes if "samples per step are unknown" in note]
        assert len(unknown) == (samples is None)


def test_only_chosen_ranks_record_and_the_others_run_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_rank(monkeypatch, 1)
    with pytest.raises(RunError, match="rank 1 records nothing"):
        captured(tmp_path / "mine", ranks=(0,))
    as_rank(monkeypatch, 0)
    captured(tmp_path / "mine", ranks=(0,))
    run = wb.open(tmp_path / "mine")
    assert [rank.rank for rank in run.ranks] == [0]
    assert any("1 of 2 ranks have no file" in note for note in run.notes)
    for odd in ((), (-1,), ("0",), "01"):
        with pytest.raises(SettingError, match="ranks="):
            wb.capture(tmp_path, ranks=odd)  # type: ignore[arg-type]


def test_ranks_of_two_jobs_copied_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank, job in ((0, "a"), (1, "b")):
        as_rank(monkeypatch, rank, job=job)
        captured(tmp_path / job)
    (tmp_path / "b" / "rank1").rename(tmp_path / "a" / "rank1")
    with pytest.raises(RunError, match="of 2 jobs"):
        wb.open(tmp_path / "a")


def test_under_mpirun_ranks_are_known_from_its_environment(tmp_path: Path) -> None:
    """A real ``mpirun -np 2``, also as root, of a loop that knows nothing of MPI."""
    from workbench.parallel.mpirun import mpirun_arguments, mpirun_environment

    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    subprocess.run(
        [*mpirun_arguments(2), sys.executable, str(script), str(tmp_path / "job"), "None"],
        env={**os.environ, **mpirun_environment(), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        check=True,
        timeout=240,
        cwd=tmp_path,
    )
    run = wb.open(tmp_path / "job")
    assert [rank.rank for rank in run.ranks] == [0, 1]
    assert run.record is not None
    assert run.record.effective["launched_by"] == "mpirun"
    assert run.record.effective["local_world_size"] == 2
