"""The answers of a Run about its work: headline, utilisation, products; missing ones say why."""

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.kineto import Kineto
from workbench.analysis.costs.gemms import layout_of, sizes_of
from workbench.errors import RunError
from workbench.run.headline import Headline, brief, rounded

B, F = "c10::BFloat16", "float"
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 80 << 30}


def product(m: int, k: int, n: int, dtype: str = B) -> dict[str, Any]:
    strides = [[k, 1], [n, 1]]
    return {"Input Dims": [[m, k], [k, n]], "Input type": [dtype] * 2, "Input Strides": strides}


def opened(made: Kineto, tmp_path: Path, device: dict[str, Any] | None = None) -> wb.Run:
    if device is not None:
        made.header["deviceProperties"] = [{**made.header["deviceProperties"][0], **device}]
    return wb.open(made.write(tmp_path / "trace.json"))


def four_steps(
    n: int = 4096, *, dtype: str = B, kernel: str = "nvjet_tst_128x64", busy: float = 300
) -> Kineto:
    """Steps of 1 ms: a product, then nothing."""
    made = Kineto(gpu=True)
    for step in range(5):
        at = step * 1000.0
        made.step(step, at, 1000)
        made.op("aten::mm", at + 10, 20, **product(4096, 4096, n, dtype))
        made.launched(kernel, call=(at + 12, 2), kernel=(at + 50, busy), correlation=step + 1)
    return made


def test_the_headline_is_a_sum_and_names_the_roof(tmp_path: Path) -> None:
    run = opened(four_steps(), tmp_path, H100)
    found = run.headline
    assert found is not None
    assert found.total_ns == pytest.approx(1_000_000)
    assert sum(ns for _, ns in found.parts) == pytest.approx(found.total_ns)
    # 2 · 4096³ at 989.4e12 take 138.9 µs of the 300
    assert found.parts[0] == ("compute", pytest.approx(300_000))
    assert found.roof_share == pytest.approx(138.9 / 300, rel=0.01)
    assert found.sentence.startswith("step 1.00 ms = 0.30 compute (46 % of the roof) + ")
    assert ("compute at its roof", pytest.approx(161_000, rel=0.01)) in found.fixes
    assert found.sentence in " ".join(repr(run).split())


def test_utilisation_by_hand(tmp_path: Path) -> None:
    found = opened(four_steps(), tmp_path, H100).utilisation
    assert found.flops_per_step == 2 * 4096**3
    assert found.hfu == pytest.approx(2 * 4096**3 / 989.4e12 / 1e-3, rel=0.01)
    assert found.mfu == found.hfu
    assert found.peaks is not None
    assert "H100 SXM5" in found.peaks
    assert found.samples_per_s is None
    assert "samples_per_s" in found.reasons


def test_products_with_layout_alignment_and_speed(tmp_path: Path) -> None:
    run = opened(four_steps(50257), tmp_path, H100)
    table = run.gemms
    assert table is not None
    row = table.to_dict("records")[0]
    assert (row["m"], row["k"], row["n"]) == (4096, 4096, 50257)
    assert (row["layout"], row["alignment"]) == ("NN", 1)
    assert row["tensor_core_share"] == 1.0
    assert row["eligible"]
    # it would be above the roof, so that nothing is advised
    assert row["advice"] is None


def test_a_slow_odd_product_is_told_to_be_padded_and_how_much_that_could_win(
    tmp_path: Path,
) -> None:
    run = opened(four_steps(1001), tmp_path, H100)
    assert run.gemms is not None
    row = run.gemms.to_dict("records")[0]
    assert row["advice"] == "pad 1001 to 1024: rows of bf16 should be multiples of 8"
    roof = 2 * 4096 * 4096 * 1001 / 989.4e12 * 1e9
    assert row["saving_ns"] == pytest.approx(300_000 - roof, rel=0.01)


def test_no_product_in_bf16_on_the_newest_kernels_is_told_to_change_its_precision(
    tmp_path: Path,
) -> None:
    run = opened(four_steps(2048, busy=950), tmp_path, H100)
    assert run.gemms is not None
    assert not run.gemms["advice"].fillna("").str.contains("bf16 would").any()
    assert [f.code for f in run.findings if f.code.startswith("WB3") and f.verdict == "yes"] == []


def test_fp32_without_tensor_cores_is_told_what_they_could_win(tmp_path: Path) -> None:
    run = opened(four_steps(4096, dtype=F, kernel="ampere_sgemm_128x64_tn"), tmp_path, H100)
    assert run.gemms is not None
    row = run.gemms.to_dict("records")[0]
    assert row["dtype"] == "fp32"
    # at 66.9e12 the product would take 2.05 ms: it did better than its peak allows
    assert row["roof_ns"] > row["time_ns"]
    assert row["advice"] is None


def test_a_device_that_is_not_in_the_table_is_said(tmp_path: Path) -> None:
    run = opened(four_steps(), tmp_path, {"name": "Unheard-of 9000"})
    assert run.peaks is None
    assert run.roofline is None
    assert run.gemms is None
    found = run.utilisation
    assert found.hfu is None
    assert found.reasons["hfu"] == (
        "Unheard-of 9000 is not in the table of accelerators, and was not measured here"
    )
    assert found.flops_per_step == 2 * 4096**3, "the work is known all the same"
    assert run.headline is not None
    assert run.headline.roof_share is None


def test_without_shapes_nothing_is_guessed(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    for step in range(4):
        made.step(step, step * 1000.0, 1000)
        made.op("aten::mm", step * 1000.0 + 10, 20)
        made.launched(
            "gemm",
            call=(step * 1000.0 + 12, 2),
            kernel=(step * 1000.0 + 50, 300),
            correlation=step + 1,
        )
    run = opened(made, tmp_path, H100)
    assert run.utilisation.hfu is None
    assert "record with shapes" in run.utilisation.reasons["hfu"]
    assert run.costs is not None
    assert run.costs["reason"].tolist() == ["no shapes were recorded"]


def test_other_peaks_may_be_given(tmp_path: Path) -> None:
    run = opened(four_steps(), tmp_path, {"name": "Unheard-of 9000"})
    run.peaks = {  # type: ignore[assignment]
        "device": "mine",
        "flops_per_s": {"bf16": 1000e12},
        "bytes_per_s": 1e12,
        "source": "by hand",
        "measured": True,
    }
    assert run.utilisation.hfu == pytest.approx(2 * 4096**3 / 1000e12 / 1e-3)
    with pytest.raises(RunError, match="no peaks"):
        run.peaks = {"flops": 3}  # type: ignore[assignment]


def test_tokens_are_those_of_a_batch_of_sequences(tmp_path: Path) -> None:
    made = four_steps()
    for step in range(5):
        at = step * 1000.0
        sizes = {"Input Dims": [[50257, 768], [8, 1024]], "Input type": [B, "long int"]}
        made.op("aten::embedding", at + 40, 5, **sizes)
        places = {"Input Dims": [[1024, 768], [1024]], "Input type": [B, "long int"]}
        made.op("aten::embedding", at + 46, 5, **places)
    found = opened(made, tmp_path, H100).utilisation
    assert found.tokens_per_s == pytest.approx(8 * 1024 / 1e-3)


def test_a_checkpointed_product_counts_for_the_hardware_and_not_for_the_model(
    tmp_path: Path,
) -> None:
    made = Kineto(gpu=True)
    for step in range(5):
        at, ident = step * 1000.0, step * 10
        made.step(step, at, 1000)
        sizes = product(512, 512, 512)
        made.op("aten::mm", at + 10, 20, **sizes, **{"Sequence number": ident + 1})
        made.launched("gemm", call=(at + 12, 2), kernel=(at + 50, 100), correlation=ident + 1)
        node = "autograd::engine::evaluate_function: MmBackward0"
        made.op(node, at + 200, 200, tid=200, **{"Sequence number": ident + 1})
        # the forward pass again, with a number of its own, then a gradient
        made.op("aten::mm", at + 210, 20, tid=200, **sizes, **{"Sequence number": ident + 2})
        made.launched(
            "gemm", call=(at + 212, 2), kernel=(at + 250, 100), correlation=ident + 2, tid=200
        )
        made.op("aten::mm", at + 300, 20, tid=200, **sizes)
        made.launched(
            "gemm", call=(at + 302, 2), kernel=(at + 360, 100), correlation=ident + 3, tid=200
        )
    found = opened(made, tmp_path, H100).utilisation
    assert found.flops_per_step == 3 * 2 * 512**3
    assert found.model_flops_per_step == 2 * 2 * 512**3
    assert found.hfu is not None
    assert found.mfu == pytest.approx(found.hfu * 2 / 3)


@pytest.mark.parametrize(
    ("values", "total", "shown"),
    [
        ([94.04, 1.04, 0.54], 95.62, ["95.6", "94.0", "1.1", "0.5"]),
        ([33.4, 33.3, 33.3], 100.0, ["100", "34", "33", "33"]),
        ([1.0], 1.0, ["1.00", "1.00"]),
    ],
)
def test_what_is_shown_sums_to_what_is_shown(
    values: list[float], total: float, shown: list[str]
) -> None:
    found = rounded(values, total)
    assert sum(map(float, found[1:])) == pytest.approx(float(found[0]))
    assert found == shown


def test_a_headline_without_a_fix_names_none() -> None:
    made = Headline(
        whole="step",
        total_ns=95_600_000,
        parts=(("compute", 94_000_000.0), ("kernel gap", 1_600_000.0)),
        roof_share=0.61,
        fixes=(),
        overhead=None,
    )
    assert made.sentence == "step 95.6 ms = 94.0 compute (61 % of the roof) + 1.6 kernel gap."


def test_a_headline_says_of_how_many_steps_it_is_and_why_they_are_slower() -> None:
    """5 ms a step, of which a tenth could go; without the profiler it takes 2 ms."""
    made = Headline(
        whole="step",
        total_ns=5_000_000,
        parts=(("operators", 4_000_000.0), ("input", 1_000_000.0)),
        roof_share=None,
        fixes=((f"WB101 ({brief('Input-bound: 20 % of each step is waiting.')})", 500_000.0),),
        overhead=2.5,
        steps=8,
    )
    assert made.sentence == (
        "step 5.00 ms = 4.00 operators + 1.00 input; "
        "best case by fix: WB101 (Input-bound) −0.50 ms "
        "(mean of 8 steps under the profiler, which slows the host: 2.50 times a step without it)."
    )


def test_what_a_fix_is_called_is_cut_between_words() -> None:
    title = "The device idles 29 % of each step while the host runs code outside any operator."
    assert brief(title) == "The device idles 29 % of each step …"


def test_sizes_and_layouts_of_products() -> None:
    sizes = sizes_of("aten::addmm", "[[8],[4,16],[16,8],[],[]]")
    assert sizes is not None
    assert (sizes.m, sizes.k, sizes.n, sizes.batch) == (4, 16, 8, 1)
    batched = sizes_of("aten::bmm", "[[3,4,16],[3,16,8]]")
    assert batched is not None
    assert batched.batch == 3
    assert layout_of("aten::mm", "[[16,1],[1,16]]") == ("NT", (16, 16))
    assert layout_of("aten::mm", None) == (None, ())
    assert sizes_of("aten::mm", None) is None


def test_charts_of_work_and_roof_show_what_the_tables_hold(tmp_path: Path) -> None:
    run = opened(four_steps(1001), tmp_path, H100)
    for name in ("roofline", "roof_waterfall", "gemms"):
        drawn = run.figure(name)  # type: ignore[arg-type]
        assert drawn.measured, name
        assert "H100 SXM5" in drawn.subtitle
    assert not run.figure("module_tree").measured
    assert "one more step" in run.figure("module_tree").subtitle
    assert len(run.more("roof").charts) == 3
    assert "module_costs" in run.summary.not_measured


def test_charts_without_a_roof_say_why(tmp_path: Path) -> None:
    run = opened(four_steps(), tmp_path, {"name": "Unheard-of 9000"})
    for name in ("roofline", "roof_waterfall", "gemms"):
        drawn = run.figure(name)  # type: ignore[arg-type]
        assert not drawn.measured
        assert "Unheard-of 9000 is not in the table" in drawn.subtitle
    assert "Unheard-of 9000" in run.summary.not_measured["roofline"]
