"""The wait is cut where the awaited batch went from stage to stage; the sum is exact."""

import numpy as np
import pytest

from tests.analysis.stalls.hand import batch, looked, records, spans, split, started, told
from workbench.analysis.stalls.parts import Unseen
from workbench.analysis.stalls.split import (
    NOT_RECORDED,
    OTHER_LOADER,
    WAITS_ONLY,
    split_stalls,
)


def test_in_the_loops_own_process_each_stage_takes_its_stretch() -> None:
    """Sampler 0 to 2, samples to 70, collate to 90, and 10 to come back from the call."""
    found = records(batch(0, wait=(0, 100), fetch=(2, 90), collate=20))
    assert told(split(found, spans((0, 100)))) == {"decode": 68, "collate": 20, "other": 12}


def test_only_the_exposed_stretch_counts() -> None:
    """The device still works until 80: of samples nothing is left, of collate 10."""
    found = records(batch(0, wait=(0, 100), fetch=(2, 90), collate=20))
    assert told(split(found, spans((80, 100)), waits=spans((0, 100)))) == {
        "collate": 10,
        "other": 10,
    }


def test_of_a_worker_only_what_the_loop_had_to_wait_for_counts() -> None:
    """Fetched from 0 to 60 while a step ran until 50; arrived at 75, delivered at 76."""
    found = records(batch(0, worker=0, wait=(50, 76), fetch=(0, 60), collate=4, received=75))
    assert told(split(found, spans((50, 76)))) == {
        "decode": 6,
        "collate": 4,
        "transfer": 15,
        "other": 1,
    }


def test_a_batch_that_lay_ready_costs_the_delivery_alone() -> None:
    found = records(batch(0, worker=0, wait=(50, 51), fetch=(0, 20), received=30))
    assert told(split(found, spans((50, 51)))) == {"other": 1}


def test_a_worker_busy_with_another_batch_is_starvation() -> None:
    """Batch 1 lies before its worker, which fetches batch 2 until 30; before 10 it did nothing."""
    found = records(
        batch(1, worker=0, wait=(0, 60), fetch=(30, 50), received=58),
        batch(2, worker=0, fetch=(10, 30)),
    )
    assert told(split(found, spans((0, 60)))) == {
        "other": 12,  # nothing for 10, and the delivery
        "starvation": 20,
        "decode": 20,
        "transfer": 8,
    }


def test_a_batch_behind_anothers_pinning_waits_for_the_pinning_thread() -> None:
    """Batch 1 left its worker at 10; the thread pins batch 2 until 40, then receives and pins 1."""
    found = records(
        batch(1, worker=0, wait=(0, 60), fetch=(0, 10), received=45, pin=(45, 55)),
        batch(2, worker=1, fetch=(0, 5), received=12, pin=(12, 40)),
    )
    assert told(split(found, spans((0, 60)))) == {
        "decode": 10,
        "pin": 38,
        "transfer": 7,
        "other": 5,
    }


def sent(start: float, end: float, *, cpu: float) -> dict[str, int]:
    """Pickled by the thread of the worker's queue, then written to the pipe at once."""
    took = round((end - start) * 1000)
    times = {"serialize_start_ns": round(start * 1000), "serialize_ns": took, "send_ns": 0}
    return times | {"serialize_cpu_ns": round(cpu * 1000)}


def test_a_batch_that_waits_for_the_lock_of_the_next_ones_decoding_waits_for_decoding() -> None:
    """Made at 20, sent at 50 after 2 of work; its worker computes the next one from 20 to 45.

    25 are under that lock, 28 it did not work: 25 are decoding; 5 and the way until 52 transfer.
    """
    found = records(
        batch(0, worker=0, wait=(0, 53), fetch=(0, 20), received=52, **sent(21, 50, cpu=2)),
        batch(1, worker=0, fetch=(20, 45)),
    )
    assert told(split(found, spans((0, 53)))) == {"decode": 45, "transfer": 7, "other": 1}


def test_work_of_the_hand_over_itself_stays_with_it() -> None:
    """The same, but 20 of the 30 are pickling: 10 can have been waiting for the lock."""
    found = records(
        batch(0, worker=0, wait=(0, 53), fetch=(0, 20), received=52, **sent(21, 50, cpu=20)),
        batch(1, worker=0, fetch=(20, 45)),
    )
    assert told(split(found, spans((0, 53)))) == {"decode": 30, "transfer": 22, "other": 1}


def test_a_next_batch_that_sleeps_holds_no_lock() -> None:
    found = records(
        batch(0, worker=0, wait=(0, 53), fetch=(0, 20), received=52, **sent(21, 50, cpu=2)),
        batch(1, worker=0, fetch=(20, 45), samples_cpu_ns=0),
    )
    assert told(split(found, spans((0, 53)))) == {"decode": 20, "transfer": 32, "other": 1}


def test_unpickling_asks_the_worker_for_its_tensors_and_waits_for_the_same_lock() -> None:
    """Unpickled from 21 to 51, with 3 of work, beside decoding from 20 to 45: 24 are decoding."""
    told_apart = {"unpickle_ns": 30_000, "unpickle_cpu_ns": 3_000}
    arrived = batch(0, worker=0, wait=(0, 52), fetch=(0, 20), received=51, **told_apart)
    found = records(arrived, batch(1, worker=0, fetch=(20, 45)))
    assert told(split(found, spans((0, 52)))) == {"decode": 44, "transfer": 7, "other": 1}
    idle = split(records(arrived), spans((0, 52)))
    assert told(idle) == {"decode": 20, "transfer": 31, "other": 1}


def test_threads_that_get_no_processor_are_no_hand_over() -> None:
    """Sent from 20 to 40, 15 of it ready without a processor; on its way until 50, 6 of it."""
    row = batch(0, worker=0, wait=(0, 51), fetch=(0, 20), received=50, **sent(20, 40, cpu=2))
    row |= {"send_run_delay_ns": 15_000, "receive_run_delay_ns": 6_000}
    found = told(split(records(row), spans((0, 51))))
    assert found == {"decode": 20, "oversubscription": 21, "transfer": 9, "other": 1}


def behind_another(cpu: float) -> dict[str, float]:
    """Batch 0 lies in the pipe from 22 until 60, while batch 1 is unpickled from 25 to 55.

    The other worker, which has to be asked for its tensors meanwhile, computes from 20 to 50.
    """
    unpickled = {"unpickle_ns": 30_000, "unpickle_cpu_ns": round(cpu * 1000)}
    own = {"unpickle_ns": 2_000, "unpickle_cpu_ns": 2_000}
    found = records(
        batch(0, worker=0, wait=(0, 63), fetch=(0, 20), received=62, **sent(20, 22, cpu=2), **own),
        batch(1, worker=1, wait=(64, 65), fetch=(0, 18), received=55, **unpickled),
        batch(3, worker=1, fetch=(20, 50)),
    )
    return told(split(found, spans((0, 63))))


def test_a_batch_behind_anothers_unpickling_waits_for_what_that_waits_for() -> None:
    """Of its 30 the other one's worker computes for 25: decoding, not transfer."""
    assert behind_another(cpu=5) == {"decode": 45, "transfer": 17, "other": 1}
    # 20 of the 30 are work of unpickling: only 10 can have been waiting for the lock.
    assert behind_another(cpu=20) == {"decode": 30, "transfer": 32, "other": 1}


def test_a_wait_for_a_processor_counts_from_when_the_batch_before_had_come() -> None:
    """Batch 1 was received until 40; from then until 50 the thread had no processor for 8."""
    found = records(
        batch(0, worker=0, wait=(0, 51), fetch=(0, 20), received=50, receive_run_delay_ns=8_000),
        batch(1, worker=1, fetch=(0, 18), wait=(52, 53), received=40, unpickle_ns=15_000),
    )
    assert told(split(found, spans((0, 51)))) == {
        "decode": 20,
        "transfer": 22,  # 20 to 25, 15 of the other one's unpickling, 2 of the last 10
        "oversubscription": 8,
        "other": 1,
    }


def test_decoding_of_another_worker_holds_no_lock_of_this_one() -> None:
    found = records(
        batch(0, worker=0, wait=(0, 53), fetch=(0, 20), received=52, **sent(21, 50, cpu=2)),
        batch(1, worker=1, fetch=(20, 45)),
    )
    assert told(split(found, spans((0, 53)))) == {"decode": 20, "transfer": 32, "other": 1}


def test_starting_the_loader_and_its_worker_is_startup() -> None:
    """The wait holds the start, 0 to 30; the worker is ready at 50 and fetches until 90."""
    found = records(
        batch(0, worker=0, wait=(30, 100), fetch=(50, 90), received=99),
        epochs=(started((0, 30), workers=1),),
        workers=({"stream": 0, "worker": 0, "ready_ns": 50_000},),
    )
    stalls = split(found, spans((0, 100)))
    assert told(stalls) == {"startup": 50, "decode": 40, "transfer": 9, "other": 1}
    assert stalls.workers == 1


def test_two_batches_of_one_wait_are_each_cut_for_themselves() -> None:
    """A range of the user's own around two calls of the loader, with 5 between and 10 behind."""
    found = records(
        batch(0, wait=(0, 20), fetch=(0, 20)),
        batch(1, wait=(25, 60), fetch=(30, 60), collate=30),
    )
    assert told(split(found, spans((0, 70)))) == {"decode": 20, "other": 20, "collate": 30}


def test_copies_behind_the_delivery_are_copy() -> None:
    """The loader's own time ends at 20; until 50 its wrapper brings the batch to the device."""
    found = records(batch(0, wait=(0, 20), fetch=(0, 20)))
    stalls = split(found, spans((0, 50)), copying=spans((25, 45)))
    assert told(stalls) == {"decode": 20, "copy": 20, "other": 10}
    stalls = split(found, spans((0, 50)), copying=None)
    assert stalls.by_part["copy"] is None
    assert stalls.by_part["other"] == 30_000


def test_steps_are_cut_apart_and_the_rest_has_a_row_of_its_own() -> None:
    found = records(batch(0, wait=(0, 20), fetch=(0, 20)), batch(1, wait=(20, 40), fetch=(20, 40)))
    stalls = split(found, spans((0, 40)), steps=np.array([[5_000, 25_000], [25_000, 35_000]]))
    assert stalls.steps(2).sum(axis=1).tolist() == [20_000, 10_000, 10_000]


def test_how_many_workers_fetched_meanwhile() -> None:
    """Worker 1 fetches for 5 of the 20 that the loop waits, worker 0 all along."""
    found = records(
        batch(0, worker=0, wait=(10, 30), fetch=(0, 30), received=30),
        batch(1, worker=1, fetch=(0, 15)),
    )
    assert split(found, spans((10, 30))).fetching == pytest.approx(1.25)
    assert split(records(batch(0, wait=(0, 9), fetch=(0, 9))), spans((0, 9))).fetching is None


def test_without_records_or_a_look_inside_there_is_a_reason_and_no_split() -> None:
    waits = spans((0, 10))
    assert split_stalls(records(), waits, waits) == Unseen(NOT_RECORDED)
    blind = records(batch(-1, wait=(0, 10)))
    assert split_stalls(blind, waits, waits) == Unseen(WAITS_ONLY)
    elsewhere = records(batch(0, wait=(500, 510), fetch=(500, 510)))
    assert split_stalls(elsewhere, waits, waits) == Unseen(OTHER_LOADER)


def test_workers_that_ran_before_are_unseen_and_no_cause_is_made_up() -> None:
    """Only their arrival is known: 40 in a worker whose stages nobody saw, then the delivery."""
    stalls = split(records(batch(0, wait=(0, 50), received=40)), spans((0, 50)))
    assert told(stalls) == {"other": 50}
    unseen = {name for name, ns in stalls.by_part.items() if ns is None}
    assert unseen == {"storage", "decode", "collate", "starvation", "oversubscription"}


def test_what_is_other_is_told_by_its_reason() -> None:
    """Sampler until 4, asleep for half of the samples until 44, ready at 50, 10 to come back."""
    row = batch(0, wait=(0, 60), fetch=(4, 44), samples_cpu_ns=20_000)
    stalls = split(records(row), spans((0, 60)))
    assert told(stalls) == {"decode": 20, "other": 40}
    reasons = {name: ns / 1000 for name, ns in stalls.other_by.items() if ns}
    assert reasons == {"queued": 4, "blocked": 20, "handed": 16}


def test_workers_whose_inside_nobody_saw_are_a_reason_of_their_own() -> None:
    stalls = split(records(batch(0, wait=(0, 50), received=40)), spans((0, 50)))
    reasons = {name: ns / 1000 for name, ns in stalls.other_by.items() if ns}
    assert reasons == {"unseen": 40, "handed": 10}


def test_a_tail_of_a_fetch_is_divided_as_the_whole_was() -> None:
    """A quarter of the samples' time was spent in reads: so is a quarter of each stretch."""
    row = batch(0, worker=0, wait=(60, 100), fetch=(0, 100), received=100)
    row |= {"samples_cpu_ns": 75_000} | looked(100_000, read=25_000, cpu=75_000)
    assert told(split(records(row), spans((60, 100)))) == {"storage": 10, "decode": 30}


def test_rounding_never_loses_a_nanosecond() -> None:
    """Thirds of pieces of 1 ns: each piece goes to somebody."""
    row = batch(0, wait=(0, 0.1), fetch=(0, 0.1), samples_cpu_ns=33, fetch_run_delay_ns=33)
    pieces = spans(*((at / 500, at / 500 + 0.001) for at in range(50)))
    stalls = split(records(row), pieces, waits=spans((0, 0.1)))
    assert stalls.exposed_ns == 50 == sum(ns or 0 for ns in stalls.by_part.values())
