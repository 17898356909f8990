"""The part of the summary document that the analyses of single steps, launches and copies fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.analysis.outliers import LEAST_STEPS

MOST_GAPS = 10
"""Idle gaps that a document lists of a rank."""

if TYPE_CHECKING:
    import pandas as pd

    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run


def breadth(rank: RankAnalysis) -> dict[str, Any]:
    """Fields of one rank beside those of where its window goes."""
    more = rank.details
    # While the trace is in memory: asked later, of many ranks, it would be read again and kept.
    _ = more.modules, more.operator_shapes, more.outliers
    _ = rank.costs.gemms, rank.costs.by_module
    return {
        "idle_gaps": _gaps(more.gaps),
        "step_parts": _step_parts(rank),
        "launch_queue": _rows(more.launches),
        "kernel_families": _rows(more.families),
        "copies": _rows(more.copies),
        "phases": _rows(more.phases),
        "operator_families": _rows(more.operator_families),
        "process_groups": _rows(more.groups),
    }


def breadth_not_measured(run: Run) -> dict[str, str]:
    """Why tables of these analyses are ``None``."""
    from workbench.run import tables

    reasons = {}
    if all(tables.outliers(rank) is None for rank in run.ranks):
        reasons["outliers"] = (
            f"of fewer than {LEAST_STEPS} steps after warm-up nobody can say which is unusual: "
            "record more"
        )
    if all(rank.details.launches is None for rank in run.ranks):
        reasons["launches"] = "the trace joins no kernel to the call that launched it"
    if all(rank.details.families is None for rank in run.ranks):
        reasons["families"] = "the trace holds no device work"
    if all(rank.details.groups is None for rank in run.ranks):
        reasons["process_groups"] = "the trace cannot tell whether there was any collective"
    if all(rank.details.copies is None for rank in run.ranks):
        reasons["copies"] = "the trace holds no device work"
    if all(rank.details.phases is None for rank in run.ranks):
        reasons["phases"] = "the trace holds no operator of the framework: record CPU activity"
    if all(rank.details.operator_shapes is None for rank in run.ranks):
        reasons["operator_shapes"] = "no shapes were recorded: use Record(shapes=True)"
    if all(rank.details.modules is None for rank in run.ranks):
        reasons["modules"] = "the trace holds no module: record stacks, Record(stacks=True)"
    return reasons


def _gaps(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """The longest idle gaps of all devices of a rank, longest first."""
    if table is None:
        return None
    ranked = table.sort_values("length_ns", ascending=False, kind="stable").head(MOST_GAPS)
    plain = records(ranked.drop(columns=["causes", "host"]))
    return [
        {
            **row,
            "causes_us": {name: ns / 1000 for name, ns in causes},
            "host_us": {name: ns / 1000 for name, ns in host},
        }
        for row, causes, host in zip(plain, ranked["causes"], ranked["host"], strict=True)
    ]


def _step_parts(rank: RankAnalysis) -> list[dict[str, Any]] | None:
    """Every complete step by parts, of every device, or of the loop's thread under null."""
    found = rank.details.steps
    if not found:
        return None
    slow = {d: {each.step for each in some} for d, some in rank.details.outliers.items()}
    return [
        {
            "device": device,
            "step": number,
            "start_us": int(each.start[i]) / 1000,
            "time_us": int(each.length[i]) / 1000,
            "steady": bool(each.steady[i]),
            "outlier": number in slow[device],
            "parts_us": {
                name: None if ns is None else int(ns[i]) / 1000 for name, ns in each.parts.items()
            },
        }
        for device, each in found.items()
        for i, number in enumerate(each.numbers)
    ]


def _rows(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    return None if table is None else records(table)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as JSON: nanoseconds as microseconds, what is missing as null."""
    import pandas as pd

    return [
        {
            name.removesuffix("_ns") + "_us" if name.endswith("_ns") else name: None
            if pd.isna(value)
            else value / 1000
            if name.endswith("_ns")
            else value
            for name, value in ((str(key), each) for key, each in row.items())
        }
        for row in table.astype(object).to_dict("records")
    ]
