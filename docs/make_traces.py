"""Build the GPU traces of the lessons from durations of real kernels.

Run it as ``python docs/make_traces.py``; it writes ``datasets/traces/NAME.trace.json.gz``.
Durations and counts are means of a public recording, named in ``datasets/traces.md``; the recording
itself is not part of it. The same source gives the same bytes.
"""

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.kineto import Kineto

FOLDER = Path(__file__).resolve().parents[1] / "datasets/traces"
FORWARD = "volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f"
BACKWARD = "volta_fp16_s884cudnn_fp16_128x128_ldg8_dgrad_f2f"
STEPS = 22
KERNEL_US = 67.0
"""Mean of the 8772 kernels of ResNet-50 on a V100, in the recording of torch-tb-profiler."""
LAUNCH_US = 10.0
"""Host time of an operator with its launch, as there."""
SMALL_US = 2.5
"""A kernel of one small tensor."""
INPUT_US = 60_000.0
"""Mean wait for a batch there, with no worker process."""
COPY_US = 2_000.0
"""A batch of pictures to the device; 12 ms of copies in six steps there."""
LAG_US = 5.0
"""From a launch call to its kernel, on an empty queue."""


V100 = {
    "id": 0,
    "name": "Tesla V100-SXM2-16GB",
    "totalGlobalMem": 16_945_512_448,
    "computeMajor": 7,
    "computeMinor": 0,
    "numSms": 80,
}


@dataclass
class Machine:
    """A host that launches, and a device that works through its queue in order."""

    trace: Kineto = field(default_factory=lambda: Kineto(gpu=True))
    host: float = 0.0
    device: float = 0.0
    launched: int = 0

    def kernel(self, name: str, length: float, *, operator: str, took: float = LAUNCH_US) -> None:
        """An operator that launches one kernel."""
        self.trace.op(operator, self.host, took)
        start = max(self.host + took - 2 + LAG_US, self.device + 1)
        self.launched += 1
        self.trace.launched(
            name, call=(self.host + took - 4, 3), kernel=(start, length), correlation=self.launched
        )
        self.host += took
        self.device = start + length

    def copy(self, name: str, length: float, *, blocks: bool = False) -> None:
        """A copy; one that blocks holds the host until the device has done all before it."""
        self.launched += 1
        start = max(self.host + LAG_US, self.device + 1)
        call = start + length - self.host if blocks else 4.0
        self.trace.runtime("cudaMemcpyAsync", self.host, call, correlation=self.launched)
        self.trace.kernel(name, start, length, correlation=self.launched, cat="gpu_memcpy")
        self.device = start + length
        self.host += call + 1

    def read(self) -> None:
        """``loss.item()``: a copy of four bytes, and a wait until it is there."""
        began = self.host
        self.launched += 1
        copied = max(self.host + 8 + LAG_US, self.device + 1)
        self.trace.runtime("cudaMemcpyAsync", self.host + 4, 4, correlation=self.launched)
        self.trace.kernel(
            "Memcpy DtoH (Device -> Pinned)",
            copied,
            1.5,
            correlation=self.launched,
            cat="gpu_memcpy",
        )
        self.launched += 1
        ready = copied + 1.5
        wait = ready + 3 - (self.host + 9)
        self.trace.runtime(
            "cudaStreamSynchronize", self.host + 9, wait, correlation=self.launched, stream=7
        )
        self.host, self.device = ready + 6, ready
        self.trace.op("aten::item", began, self.host - began)
        self.trace.op("aten::_local_scalar_dense", began + 2, self.host - began - 3)

    def passes(self, layers: int, length: float = KERNEL_US) -> None:
        """Forward and backward."""
        for _ in range(layers):
            self.kernel(
                "volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f",
                length,
                operator="aten::cudnn_convolution",
            )
        for _ in range(layers):
            self.kernel(
                "volta_fp16_s884cudnn_fp16_128x128_ldg8_dgrad_f2f",
                length,
                operator="aten::convolution_backward",
            )

    def optimizer(self, kernels: int, *, operator: str, length: float = SMALL_US) -> None:
        """The optimizer's step."""
        began = self.host
        for _ in range(kernels):
            self.kernel("vectorized_elementwise_kernel", length, operator=operator)
        self.trace.range("Optimizer.step#SGD.step", began - 1, self.host - began + 2)
        self.host += 2


def input_bound(machine: Machine) -> None:
    """A batch takes 60 ms to come, and 98 ms to train on."""
    machine.trace.loader(machine.host, INPUT_US)
    machine.host += INPUT_US
    machine.copy("Memcpy HtoD (Pinned -> Device)", COPY_US)
    machine.passes(50, 14.6 * KERNEL_US)
    machine.optimizer(4, operator="aten::_foreach_add_", length=200)
    machine.read()


def sync_in_loop(machine: Machine) -> None:
    """The loss is read once a step, and written down."""
    machine.passes(25)
    machine.optimizer(4, operator="aten::_foreach_add_", length=60)
    machine.read()
    machine.host += 400  # formatting and printing it


def single_tensor_optimizer(machine: Machine) -> None:
    """161 parameters, three operators each."""
    machine.passes(25)
    machine.optimizer(3 * 161, operator="aten::add_")


def small_kernels(machine: Machine) -> None:
    """Four hundred operators on tensors so small that launching takes longer than computing."""
    machine.passes(200, SMALL_US)
    machine.optimizer(4, operator="aten::_foreach_add_")


def healthy(machine: Machine) -> None:
    """The host is ahead of the device all the time."""
    machine.passes(50)
    machine.optimizer(4, operator="aten::_foreach_add_", length=60)


TRACES: tuple[Callable[[Machine], None], ...] = (
    *(input_bound, sync_in_loop, single_tensor_optimizer, small_kernels, healthy),
)


def built(step: Callable[[Machine], None]) -> bytes:
    """The file of a loop of such steps."""
    machine = Machine()
    for number in range(STEPS):
        began = machine.host
        step(machine)
        machine.trace.step(number, began, machine.host - began)
        machine.host += 5
    # A program that ends waits for its device, and so the last step's work is there as well.
    machine.trace.runtime(
        "cudaDeviceSynchronize",
        machine.host,
        max(machine.device - machine.host, 0) + 5,
        correlation=machine.launched + 1,
    )
    machine.trace.header["deviceProperties"] = [V100]
    document = {**machine.trace.document(), "built": "not recorded: see datasets/traces.md"}
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for step in TRACES:
        (FOLDER / f"{step.__name__}.trace.json.gz").write_bytes(built(step))


if __name__ == "__main__":
    main()
