"""What the user's process has is the user's: open files, profile functions, copies, children."""

import copy
import os
import pickle
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, ones
from torch.utils.data import DataLoader, IterableDataset

from tests.recording.loader.datasets import Chance, Stages
from tests.recording.loader.driving import record, take
from workbench.recording.loader.context import ProbedContext
from workbench.recording.loader.counters import run_delay_ns
from workbench.recording.loader.layout import MISSING, Kind, SideFile, pack, read
from workbench.recording.loader.probe import CONTEXT, LoaderProbe
from workbench.recording.loader.processes import process_row
from workbench.recording.loader.reads import USUAL_CALL_NS, Reads, call_cost_ns
from workbench.recording.loader.recorder import LoaderRecorder


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(("workers", "most"), [(0, 2), (2, 12)])
def test_short_epochs_do_not_pile_up_open_files(workers: int, most: int) -> None:
    # An epoch's two workers hold five open files, and one epoch's may linger; twelve are 60.
    loader = DataLoader(Stages(4), 2, num_workers=workers)
    with LoaderRecorder() as recorder:
        list(take(recorder, loader))
        after_one = open_files()
        for _ in range(11):
            list(take(recorder, loader))
        assert open_files() - after_one <= most
    codes = [worker["exit_code"] for worker in recorder.workers]
    assert codes == [0] * 12 * workers
    assert len({worker["pid"] for worker in recorder.workers}) == 12 * workers


class SetsAProfile(Chance):
    """A data set that begins to profile in its first sample, as ``cProfile`` and debuggers do."""

    def __getitem__(self, index: int) -> Any:
        sys.setprofile(users_own)
        return index


def users_own(frame: Any, kind: str, argument: Any) -> None:
    """A profile function of the user's."""


def test_a_profile_function_set_while_a_sample_is_looked_at_stays() -> None:
    try:
        _, recorder = record(DataLoader(SetsAProfile(), 4, collate_fn=list), most=1)
        assert sys.getprofile() is users_own
    finally:
        sys.setprofile(None)
    (item, *_) = recorder.batches[0]["items"]
    assert item["read_ns"] is None  # it was not listened to to the end


def test_what_listening_costs_is_not_nothing_beside_a_profile_function_of_the_users() -> None:
    sys.setprofile(users_own)
    try:
        assert call_cost_ns() == USUAL_CALL_NS
        assert sys.getprofile() is users_own
    finally:
        sys.setprofile(None)


def test_an_interrupt_between_two_lines_leaves_no_profile_function_when_probes_rest() -> None:
    with LoaderRecorder() as recorder:
        loader = DataLoader(Stages(4), 2)
        iterator = recorder.probe.iterate(loader, lambda: iter(loader))
        (fetch,) = recorder.probe._fetches
        reads = fetch._look._reads
        reads.begin()  # an interrupt came before its end
        assert sys.getprofile() is not None
    assert sys.getprofile() is None
    assert len(list(iterator)) == 2


def test_a_batch_after_an_interrupted_one_is_put_together_by_the_users_function() -> None:
    with LoaderRecorder() as recorder:
        loader = DataLoader(Chance(), 4, collate_fn=list)
        iterator: Any = recorder.probe.iterate(loader, lambda: iter(loader))
        (fetch,), fetcher = recorder.probe._fetches, iterator._dataset_fetcher
        fetch._open, fetch._collate = fetcher, fetcher.collate_fn
        fetcher.collate_fn = fetch._timed_collate  # as an interrupt before the fetch leaves it
        assert len(next(iterator)) == 4
        assert fetcher.collate_fn is list


class Stream(IterableDataset[Tensor]):
    """Three samples."""

    def __iter__(self) -> Any:
        return iter([ones(1)] * 3)


def test_the_end_of_a_stream_is_no_sample() -> None:
    _, recorder = record(DataLoader(Stream(), 2))
    assert all(row["looked_samples"] in (0, 1, 2) for row in recorder.batches)
    # The second batch holds one sample and then meets the end.
    looked = [item["position"] for row in recorder.batches for item in row.get("items", ())]
    assert len(looked) <= 3


class AsksForNames(Chance):
    """A data set that notes which of its attributes are asked for."""

    asked: list[str] = []  # noqa: RUF012 - of the class, as the instance's are asked for

    def __getattribute__(self, name: str) -> Any:
        AsksForNames.asked.append(name)
        return super().__getattribute__(name)


def test_a_data_set_with_ways_of_its_own_is_asked_for_nothing_more() -> None:
    def asked(*, probed: bool) -> list[str]:
        loader = DataLoader(AsksForNames(), 4, collate_fn=list)
        AsksForNames.asked.clear()
        if probed:
            record(loader)
        else:
            list(loader)
        return sorted(set(AsksForNames.asked))

    assert asked(probed=True) == asked(probed=False)


def test_a_copy_of_the_loader_made_while_it_starts_has_the_users_context() -> None:
    for given in (None, __import__("multiprocessing").get_context("spawn")):
        context = ProbedContext(given, given, "/nowhere", 0, 1)
        assert copy.deepcopy(context) is None if given is None else True
        assert type(pickle.loads(pickle.dumps(context))) is type(given)


def test_another_thread_that_starts_workers_meanwhile_is_left_alone() -> None:
    class Real:
        def Process(self, **given: Any) -> Any:  # noqa: N802 - multiprocessing's name
            return given["target"]

    context, found = ProbedContext(None, Real(), "/nowhere", 0, 1), []
    thread = threading.Thread(target=lambda: found.append(context.Process(target=users_own)))
    thread.start()
    thread.join()
    assert found == [users_own]
    assert context.processes == []


def test_a_forked_child_neither_ends_nor_deletes_its_parents_recording() -> None:
    probe = LoaderProbe()
    probe.start()
    try:
        child = os.fork()
        if not child:
            probe.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert probe.is_on
        assert probe._switch is not None
        assert probe._switch.is_on
        assert probe.folder is not None
        assert probe.folder.is_dir()
    finally:
        probe.stop()


def test_no_place_for_records_is_said_and_loading_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    batches, recorder = record(DataLoader(Stages(4), 2))
    assert len(batches) == 2
    assert recorder.batches == []
    assert "set TMPDIR" in recorder.probe.notes[0]


def test_a_recorder_that_is_forgotten_leaves_no_thread_and_no_file() -> None:
    recorder = LoaderRecorder()
    recorder.start()
    folder = recorder.probe.folder
    assert folder is not None
    del recorder
    assert not folder.exists()
    assert [t for t in threading.enumerate() if t.name == "workbench-system"] == []


class LooksLikeTorch:
    """An iterator with the names of torch's and other things behind them."""

    def __init__(self) -> None:
        self._worker_result_queue = object()
        self._index_queues, self._send_idx, self._rcvd_idx = [], 0, 0  # type: ignore[var-annotated]
        self._left = [1, 2]

    def __iter__(self) -> "LooksLikeTorch":
        return self

    def __next__(self) -> int:
        if not self._left:
            raise StopIteration
        return self._left.pop()

    def _next_data(self) -> None: ...

    def _next_index(self) -> None: ...


def test_an_iterator_made_otherwise_inside_still_gives_its_batches() -> None:
    class Loader:
        def __iter__(self) -> LooksLikeTorch:
            return LooksLikeTorch()

    batches, recorder = record(Loader())
    assert batches == [2, 1]
    assert recorder.probe.epochs[0].detail == "waits"


def test_a_loader_that_fails_to_start_gives_its_number_to_nobody() -> None:
    class Refuses(DataLoader[Any]):
        fails = True

        def __iter__(self) -> Any:
            if self.fails:
                raise ValueError("not now")
            return super().__iter__()

    loader = Refuses(Stages(4), 2, num_workers=1)
    before = dict(loader.__dict__)
    with LoaderRecorder() as recorder:
        with pytest.raises(ValueError, match="not now"):
            list(take(recorder, loader))
        assert loader.__dict__[CONTEXT] is before[CONTEXT]
        loader.fails = False
        assert len(list(take(recorder, loader))) == 2
    assert [context.stream for context in recorder.probe.contexts] == [0, 1]


def test_a_kernel_that_does_not_count_delays_says_nothing_about_them() -> None:
    assert run_delay_ns([b"0", b"0", b"0"]) == MISSING
    assert run_delay_ns([b"95102", b"0", b"2"]) == 0
    assert run_delay_ns([]) == MISSING


def test_a_process_that_ended_and_was_not_waited_for_has_no_row(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    fields = " ".join(["0"] * 45)
    (tmp_path / "7" / "stat").write_text(f"7 (python) Z {fields}")
    assert process_row(7, tmp_path) is None
    (tmp_path / "7" / "stat").write_text(f"7 (python) S {fields}")
    assert process_row(7, tmp_path) is not None


def test_two_threads_write_one_side_file_without_losing_records(tmp_path: Path) -> None:
    file, each = SideFile(tmp_path / "x"), 3000

    def write() -> None:
        for number in range(each):
            file.write(pack(Kind.SEND, 0, number))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    file.close()
    assert len(read((tmp_path / "x").read_bytes())[Kind.SEND]) == 3 * each


def test_reads_listen_again_after_they_were_given_up() -> None:
    reads = Reads()
    reads.begin(0)
    for _ in range(2000):
        abs(1)
    assert reads.end() == (MISSING, MISSING)
    reads.begin()
    assert reads.end() != (MISSING, MISSING)
