"""Runs in a process of its own: times tiny products and convolutions in every dtype.

Started as ``python -P trial.py DEVICE SECONDS THREADS FOLDER_OF_TORCH``; writes a JSON line for the
device, one before and one after each dtype, and one for each attention back end and mode. It
imports nothing of this package, and ends itself when its seconds are over, wherever it hangs.

Sizes start small and grow eightfold in work only while the next one is sure to be cheap: an
imitated fp16 product of 1024² takes ten seconds. On the CPU one thread is timed by its own clock,
which other load does not reach.
"""

import contextlib
import faulthandler
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

ORDER = ("fp32", "bf16", "tf32", "fp8", "fp16")
"""fp16 last: where it is imitated, it is the one that may not come back."""
REPEATS = 5
CALLS_LEAST = 2 * REPEATS + 1
"""Calls that a level makes of each side: one for its first use, and two a repeat."""
PATIENCE = 4.0
"""Its seconds on the CPU are those of its own thread; beside other work they may take so many times
as long before it is ended."""
LEAST_ROUND_S = 0.002
"""Own choice: calls are timed over so long a row of them, on a device between two waits."""
MOST_CALLS = 200
CPU_SIZES = (64, 128, 256, 512, 1024)
DEVICE_SIZES = (256, 512, 1024, 2048, 4096)
CPU_IMAGES = ((8, 8), (16, 16), (32, 16), (32, 32), (64, 32))
DEVICE_IMAGES = ((32, 32), (64, 32), (128, 32), (256, 32), (256, 64))
"""Channels and side of the pictures."""
BATCH = 4
MODES = ("high", "medium")
"""Of torch.set_float32_matmul_precision, beside the exact ``highest``."""
BACK_ENDS = ("flash", "efficient", "cudnn", "math")

Calls = tuple[Callable[[], Any], Callable[[], Any]]


def main(device: str, seconds: float, threads: int) -> None:
    """Try everything on ``device``, for at most ``seconds`` once torch is there."""
    import torch

    torch.set_num_threads(threads)
    say({"device": described(torch, device)})
    warm(torch, device)
    # Ends the process from a thread of its own, also while an operator does not come back.
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - must stay open until the end
        patience = PATIENCE if device == "cpu" else 1.0
        faulthandler.dump_traceback_later(seconds * patience, exit=True, file=nowhere)
        over = clock(device) + seconds
        for place, dtype in enumerate(ORDER):
            if dtype == ORDER[-1]:
                for name in BACK_ENDS:
                    say({"attention": name, "dtypes": attention(torch, device, name)})
                for mode in MODES:
                    left = over - clock(device)
                    say({"mode": mode} | mode_tried(torch, device, mode, left / 6))
            say({"begins": dtype})
            # Half of what is left for products, half for convolutions, and some for the end.
            share = 0.9 * (over - clock(device)) / (2 * (len(ORDER) - place))
            say({"dtype": dtype} | tried(torch, device, dtype, share))
        faulthandler.cancel_dump_traceback_later()


def warm(torch: Any, device: str) -> None:
    """The first product and convolution load libraries, which is no part of the limited time."""
    with contextlib.suppress(Exception):
        once(torch, device, products(torch, device, 64, "tf32")()[0])
        once(torch, device, convolutions(torch, device, (8, 8), "tf32")()[0])


def say(what: dict[str, Any]) -> None:
    """One line to whoever started this process."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def described(torch: Any, device: str) -> dict[str, Any]:
    """Name and generation of the device; opens it, which is why this is another process."""
    kind, _, index = device.partition(":")
    torch.ones(1, device=device).sum().item()
    if kind == "cpu":
        checks = {"onednn": one_dnn, "torch": torch_tells}
        return {"type": kind} | {
            name: {dtype: ask(torch, dtype) for dtype in ("bf16", "fp16")}
            for name, ask in checks.items()
        }
    room = getattr(torch, kind, None)
    ask = getattr(room, "get_device_properties", None)
    if ask is None:
        return {"type": kind}
    found = ask(int(index or 0))
    arch = getattr(found, "gcnArchName", None)
    if arch is None and kind == "cuda" and hasattr(found, "major"):
        arch = f"sm_{found.major}{found.minor}"
    told = {"type": kind, "name": getattr(found, "name", None), "arch": arch}
    for flag in ("has_fp16", "has_bfloat16_conversions"):
        if hasattr(found, flag):
            told[flag] = bool(getattr(found, flag))
    return told


def one_dnn(torch: Any, dtype: str) -> bool | None:
    """Whether torch's library for the CPU takes the type, be it only by converting it."""
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        return bool(getattr(torch.ops.mkldnn, f"_is_mkldnn_{dtype}_supported")())
    except (AttributeError, RuntimeError):
        return None


def torch_tells(torch: Any, dtype: str) -> bool | None:
    """By torch's own checks of instructions, for systems that name no flags."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True  # oneDNN asks ARM's instructions themselves
    names = {
        "bf16": ("_is_avx512_bf16_supported", "_is_amx_tile_supported"),
        "fp16": ("_is_amx_fp16_supported",),
    }[dtype]
    answers = [bool(getattr(torch.cpu, check)()) for check in names if hasattr(torch.cpu, check)]
    return any(answers) if answers else None


def tried(torch: Any, device: str, dtype: str, budget: float) -> dict[str, Any]:
    """What one dtype can do: ratios to fp32 with their sizes, or the error in words."""
    try:
        if dtype == "tf32" and not has_tf32(torch, device):
            return {
                "supported": False,
                "reason": "TF32 is a mode of tensor cores; here it changes no result",
            }
        sizes = CPU_SIZES if device == "cpu" else DEVICE_SIZES
        if dtype == "fp32":
            once(torch, device, products(torch, device, sizes[0], dtype)()[0])
            return {"supported": True, "matmul_ratio": 1.0, "convolution_ratio": 1.0}
        ratio, size = grown(
            torch, device, budget, [(n, products(torch, device, n, dtype)) for n in sizes]
        )
        found = {"supported": True, "matmul_ratio": ratio, "matmul_size": size}
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return {"supported": False, "reason": first_line(error)}
    finally:
        set_tf32(torch, on=False)
    return found | convolved(torch, device, dtype, budget)


def mode_tried(torch: Any, device: str, mode: str, budget: float) -> dict[str, Any]:
    """Whether a mode of fp32 products changes a result, and its time to that of the exact one."""

    def make(n: int) -> Callable[[], Calls]:
        def calls() -> Calls:
            a, b = (torch.randn(n, n, device=device) for _ in range(2))
            return lambda: a @ b, in_mode(torch, mode, lambda: a @ b)

        return calls

    sizes = CPU_SIZES if device == "cpu" else DEVICE_SIZES
    try:
        ratio, size = grown(torch, device, budget, [(n, make(n)) for n in sizes])
        exact, other = make(size or sizes[0])()
        acts = not torch.equal(exact(), other())
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return {"acts": False, "reason": first_line(error)}
    return {"acts": acts, "ratio": ratio}


def in_mode(torch: Any, mode: str, call: Callable[[], Any]) -> Callable[[], Any]:
    """The call in a mode of fp32 products, of this process alone."""

    def inside() -> Any:
        torch.set_float32_matmul_precision(mode)
        try:
            return call()
        finally:
            torch.set_float32_matmul_precision("highest")

    return inside


def convolved(torch: Any, device: str, dtype: str, budget: float) -> dict[str, Any]:
    """The same for convolutions; nothing where torch has none in this dtype."""
    if dtype == "fp8":
        return {}
    images = CPU_IMAGES if device == "cpu" else DEVICE_IMAGES
    try:
        ratio, _ = grown(
            torch, device, budget, [(n, convolutions(torch, device, n, dtype)) for n in images]
        )
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return {"convolution_error": first_line(error)}
    finally:
        set_tf32(torch, on=False)
    return {"convolution_ratio": ratio}


def first_line(error: Exception) -> str:
    """What torch said, without a stack of its own."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def products(torch: Any, device: str, n: int, dtype: str) -> Callable[[], Calls]:
    """Makes the two calls that are compared: fp32, and the dtype."""

    def make() -> Calls:
        a, b = (torch.randn(n, n, device=device) for _ in range(2))

        def plain() -> Any:
            return a @ b

        if dtype in ("fp32", "tf32"):
            return plain, with_tf32(torch, plain)
        if dtype == "fp8":
            low, one = a.to(fp8_kind(torch, device)), torch.ones((), device=device)
            high = low.t()

            def scaled() -> Any:
                return torch._scaled_mm(
                    low, high, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
                )

            return plain, scaled
        kind = torch.bfloat16 if dtype == "bf16" else torch.float16
        c, d = a.to(kind), b.to(kind)
        return plain, lambda: c @ d

    return make


def fp8_kind(torch: Any, device: str) -> Any:
    """The eight-bit type of the device's instructions; AMD's gfx94x have one of their own."""
    arch = str(described(torch, device).get("arch"))
    return torch.float8_e4m3fnuz if arch.startswith("gfx94") else torch.float8_e4m3fn


def convolutions(
    torch: Any, device: str, shape: tuple[int, int], dtype: str
) -> Callable[[], Calls]:
    """The same for a convolution of 3 × 3."""

    def make() -> Calls:
        channels, side = shape
        x = torch.randn(BATCH, channels, side, side, device=device)
        w = torch.randn(channels, channels, 3, 3, device=device)

        def plain() -> Any:
            return torch.conv2d(x, w, padding=1)

        if dtype == "tf32":
            return plain, with_tf32(torch, plain)
        kind = torch.bfloat16 if dtype == "bf16" else torch.float16
        y, v = x.to(kind), w.to(kind)
        return plain, lambda: torch.conv2d(y, v, padding=1)

    return make


def grown(
    torch: Any, device: str, budget: float, levels: list[tuple[Any, Callable[[], Calls]]]
) -> tuple[float | None, Any]:
    """Time to fp32's at the largest level that the budget allows, and that level."""
    ratio, size, began = None, None, clock(device)
    for level, make in levels:
        plain, low = make()
        first = once(torch, device, low)
        once(torch, device, plain)
        left = budget - (clock(device) - began)
        if ratio is not None and first * CALLS_LEAST > left:
            break
        pairs = [(timed(torch, device, plain), timed(torch, device, low)) for _ in range(REPEATS)]
        spent = [statistics.median(side) for side in zip(*pairs, strict=True)]
        if spent[0] > 0:
            ratio, size = spent[1] / spent[0], level
        left = budget - (clock(device) - began)
        if 8 * (spent[1] + spent[0]) * CALLS_LEAST > left:
            break
    return ratio, size


def once(torch: Any, device: str, call: Callable[[], Any]) -> float:
    """Seconds of one call, the first of its kind included."""
    began = clock(device)
    call()
    wait(torch, device)
    return clock(device) - began


def clock(device: str) -> float:
    """Seconds of this thread where it computes itself, else of the wall."""
    return time.thread_time() if device == "cpu" else time.monotonic()


def timed(torch: Any, device: str, call: Callable[[], Any]) -> float:
    """Seconds of one call, over a row of calls that is long enough to be timed."""
    calls = max(1, min(MOST_CALLS, int(LEAST_ROUND_S / max(once(torch, device, call), 1e-6))))
    began = clock(device)
    for _ in range(calls):
        call()
    wait(torch, device)
    return (clock(device) - began) / calls


def wait(torch: Any, device: str) -> None:
    """Until the device has done everything."""
    kind = device.partition(":")[0]
    if kind != "cpu":
        getattr(torch, kind).synchronize()


def has_tf32(torch: Any, device: str) -> bool:
    """Whether the mode rounds 1 + 2^-12 to 1, as ten bits of mantissa must."""
    if device == "cpu":
        return False
    x = torch.full((256, 256), 1 + 2**-12, device=device)
    one = torch.ones(256, 256, device=device)
    exact = 256 * (1 + 2**-12)
    error = float((with_tf32(torch, lambda: x @ one)() - exact).abs().max())
    return error > 256 * 2**-14


def with_tf32(torch: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    """The call with the mode switched on around it."""

    def inside() -> Any:
        set_tf32(torch, on=True)
        try:
            return call()
        finally:
            set_tf32(torch, on=False)

    return inside


def set_tf32(torch: Any, *, on: bool) -> None:
    """The mode of products and convolutions, of this process alone."""
    torch.set_float32_matmul_precision("high" if on else "highest")
    torch.backends.cudnn.allow_tf32 = on


def attention(torch: Any, device: str, name: str) -> list[str]:
    """In which dtypes this back end alone computes scaled_dot_product_attention here."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "math": SDPBackend.MATH,
    }[name]
    works = []
    for dtype in ("fp32", "bf16", "fp16"):
        kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
        try:
            q = torch.randn(1, 1, 32, 64, device=device).to(kind)
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(q, q, q)
            wait(torch, device)
        except Exception:  # noqa: BLE001, S112 - it cannot, which is the answer
            continue
        works.append(dtype)
    return works


if __name__ == "__main__":
    if sys.argv[4] not in sys.path:
        sys.path.append(sys.argv[4])
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
