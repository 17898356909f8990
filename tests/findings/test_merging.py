"""What many ranks show is one finding, the worst one's, and names them all."""

from workbench.findings import Finding, merge_ranks


def finding(code: str, share: float, *, rank: int, **rest: object) -> Finding:
    told = {"verdict": "yes", "severity": "warning", "evidence": {}, "advice": ""} | rest
    return Finding(code=code, title=f"{code} of {rank}", share_of_window=share, rank=rank, **told)


def test_the_worst_rank_speaks_for_all() -> None:
    found = [(f"rank {rank}", [finding("WB401", 0.2 + 0.1 * rank, rank=rank)]) for rank in range(3)]
    (merged,) = merge_ranks(found)
    assert merged.title == "On 3 ranks (most on rank 2): WB401 of 2"
    assert (merged.rank, merged.evidence["worst_rank"]) == (None, 2)
    assert merged.evidence["ranks"] == ["rank 0 20 %", "rank 1 30 %", "rank 2 40 %"]


def test_one_ranks_finding_stays_its_own() -> None:
    only = finding("WB402", 0.2, rank=1)
    assert merge_ranks([("rank 0", []), ("rank 1", [only])]) == (only,)


def test_different_verdicts_and_different_failed_checks_stay_apart() -> None:
    clock = {"violations": {"clock": 1}}
    lost = {"violations": {"missing_kernel": 3}}
    first = [finding("WB203", 0.1, rank=0), finding("WB901", 0, rank=0, evidence=clock)]
    second = [
        finding("WB203", 0.0, rank=1, verdict="no"),
        finding("WB901", 0, rank=1, evidence=lost),
    ]
    assert len(merge_ranks([("rank 0", first), ("rank 1", second)])) == 4
