"""Random training loops with faults in them."""

from typing import Any

from tests.simulator.machine import AUTOGRAD, MAIN, PREFETCH, Flow, Late, Machine
from tests.simulator.plan import MS, US, Plan


class Loop:
    """A training loop on a machine."""

    def __init__(self, machine: Machine, plan: Plan) -> None:
        self.machine, self.plan, self.draw = machine, plan, machine.draw
        self.flow = Flow(machine, MAIN, stacks=plan.stacks)
        machine.main = self.flow
        self.seen = 0
        self.graph = False
        self.sequence = 0

    def run(self) -> None:
        """All steps of the loop."""
        if "prefetch" in self.plan.faults:
            self.prefetch()
        with self.flow.frame("train.py(10): <module>"):
            self.operator("aten::ones")
            for number in range(self.plan.steps):
                if self.plan.marks:
                    with self.flow.record("range", f"ProfilerStep#{number}"):
                        self.step()
                    if number + 1 < self.plan.steps:
                        self.between_steps()
                else:
                    self.step()
        self.machine.stop(self.flow.now)

    # what a step consists of

    def step(self) -> None:
        """Input, forward, loss, backward, optimizer."""
        flow = self.flow
        self.python()
        self.input()
        with flow.frame("torch/nn/modules/module.py(1751): _call_impl"):
            for layer in range(self.plan.layers):
                self.sequence += 1
                self.operator("aten::linear", inner="aten::addmm", sequence=self.sequence)
                self.python()
                if layer == self.plan.layers // 2:
                    self.middle()
        self.loss()
        self.backward()
        self.optimizer()
        if self.happens("pageable copy"):
            self.copy_back()

    def input(self) -> None:
        """Wait for a batch and send it to the device."""
        flow = self.flow
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        name = "load_batch" if self.plan.user_input else name
        with flow.frame("torch/utils/data/dataloader.py(729): __next__"):
            cause = "input" if flow.stacks else None
            with flow.record("range", name, cause="input"):
                late = self.happens("input")
                flow.spend(self.fault("input") if late else self.draw.ns(5 * US, 20 * US), "input")
                if self.draw.chance(0.3):  # collated in this process, into pinned memory
                    with flow.operator("aten::stack"):
                        flow.spend(self.draw.ns(10 * US, 100 * US), "input")
                    flow.call("host_alloc", self.draw.ns(10 * US, 100 * US), "input")
            flow.spend(self.draw.ns(1 * US, 2 * US), cause)
        self.python()
        with flow.operator("aten::to"), flow.operator("aten::copy_"):
            flow.spend(self.host())
            flow.launch(
                "Memcpy HtoD (Pinned -> Device)", self.draw.ns(5 * US, 60 * US),
                kind="memcpy", api="copy",
            )  # fmt: skip

    def middle(self) -> None:
        """Faults in the middle of forward."""
        flow = self.flow
        if self.happens("python"):
            with flow.frame("train.py(30): augment"):
                flow.spend(self.fault("python"))
        if self.happens("allocation"):
            with flow.operator("aten::empty"):
                flow.spend(self.host())
                flow.call("malloc", self.fault("allocation"), "allocation")
        if self.happens("free"):
            flow.synchronize("free", cause="allocation", extra=self.fault("free"))
        if self.happens("synchronize"):
            with flow.frame("torch/cuda/__init__.py(1040): synchronize"):
                flow.synchronize("device_sync")
        if self.happens("collector"):
            self.collect()
        if self.happens("compile"):
            self.compile()
        if self.happens("capture") and not self.graph:
            self.capture()
        elif self.graph or self.happens("graph"):
            self.replay()
        if self.happens("unrecorded work"):
            self.unrecorded()
        if self.happens("second device"):
            self.operator("aten::mul", device=1)
        if self.happens("nonzero"):
            self.nonzero()

    def loss(self) -> None:
        """The loss, perhaps read by the host and written down."""
        flow = self.flow
        self.operator("aten::mse_loss")
        if self.happens("item"):
            with flow.operator("aten::item"), flow.operator("aten::_local_scalar_dense"):
                flow.spend(self.host())
                flow.launch(
                    "Memcpy DtoH (Device -> Pinned)", self.draw.ns(1 * US, 2 * US),
                    kind="memcpy", api="copy",
                )  # fmt: skip
                flow.synchronize("stream_sync", streams=(7,))
                flow.spend(self.host())
        if self.happens("polling"):
            self.poll()
        if self.happens("logging"):
            with flow.frame("train.py(55): log"):
                flow.spend(self.fault("logging"))

    def backward(self) -> None:
        """The loop's thread hands over to the engine's and waits for it."""
        flow, draw = self.flow, self.draw
        with flow.frame("torch/_tensor.py(590): backward"):
            self.operator("aten::ones_like")
            # The engine's code, but on a thread that records nothing: it counts as the caller's.
            flow.spend(draw.ns(5 * US, 20 * US), "host_operators", definition=flow.python_cause)
            flow.thread = AUTOGRAD
            for number in range(self.sequence, self.sequence - self.plan.layers, -1):
                name = "autograd::engine::evaluate_function: AddmmBackward0"
                with flow.operator(name, sequence=number):
                    flow.spend(self.host())
                    self.operator("AddmmBackward0", inner="aten::mm", sequence=number)
                    if self.happens("gradient hook", 0.3):
                        with flow.frame("train.py(90): hook"):
                            flow.spend(self.draw.ns(10 * US, 200 * US))
                        if self.draw.chance(0.3):
                            flow.synchronize("event_sync", streams=(7,))
                if number > self.sequence - self.plan.layers + 1:
                    flow.spend(draw.ns(1 * US, 4 * US), "host_operators")
            if self.happens("collective"):
                self.collective()
            flow.thread = MAIN
            flow.spend(draw.ns(3 * US, 10 * US), "host_operators", definition=flow.python_cause)

    def optimizer(self) -> None:
        """Many small kernels in one range."""
        self.python()
        with self.flow.record("range", "Optimizer.step#SGD.step", cause="host_operators"):
            for _ in range(2):
                self.flow.spend(self.host())
                self.operator("aten::_foreach_add_")
            if self.happens("side stream"):
                work = self.machine.device.works[-1]
                self.flow.call("wait_event", self.draw.ns(1 * US, 2 * US), "host_operators")
                self.operator("aten::add_", stream=14, after=(work,))

    def between_steps(self) -> None:
        """``profiler.step()``."""
        flow = self.flow
        with flow.frame("torch/profiler/profiler.py(836): step"):
            late = self.happens("profiler")
            flow.spend(
                self.fault("profiler") if late else self.draw.ns(20 * US, 60 * US), "profiler"
            )

    # faults

    def copy_back(self) -> None:
        """A copy into pageable memory, which blocks."""
        flow = self.flow
        with flow.operator("aten::copy_"):
            flow.spend(self.host())
            flow.launch(
                "Memcpy DtoH (Device -> Pageable)", self.draw.ns(5 * US, 100 * US),
                kind="memcpy", api="copy", blocking=True,
            )  # fmt: skip
            flow.spend(self.host())
        if self.draw.chance(0.5):
            with self.flow.frame("train.py(80): metrics"):
                self.flow.spend(self.fault("pageable copy"))

    def nonzero(self) -> None:
        """The size of a result must reach the host before its memory can be asked for."""
        flow = self.flow
        with flow.operator("aten::index"), flow.operator("aten::nonzero"):
            flow.spend(self.host())
            self.kernel()
            flow.launch(
                "Memcpy DtoH (Device -> Pageable)", self.draw.ns(1 * US, 2 * US),
                kind="memcpy", api="copy",
            )  # fmt: skip
            flow.synchronize("stream_sync", streams=(7,))
            flow.spend(self.host())
        self.operator("aten::index_put_")

    def poll(self) -> None:
        """Asking an event again and again: a wait that no record calls one."""
        flow = self.flow
        start, drained = flow.now, self.machine.device.drained(flow.now)
        with flow.frame("train.py(70): wait_for"):
            while flow.now < drained:
                ordinary = flow.ordinary
                flow.call(
                    "query", self.draw.ns(1 * US, 2 * US), "synchronization", definition=ordinary
                )
                flow.spend(self.draw.ns(20 * US, 50 * US), "synchronization", definition=ordinary)
        flow.late = Late(start=start, end=flow.now, drained=drained, spoiled=True)

    def collect(self) -> None:
        """The garbage collector, marked by our capture, by a frame, or not at all."""
        flow, length = self.flow, self.fault("collector")
        if not self.plan.collector_seen:
            flow.spend(length, "garbage_collection", definition=flow.ordinary)
        elif flow.stacks and self.draw.chance(0.5):
            with flow.frame("<built-in function collect>"):
                flow.spend(length, "garbage_collection")
        else:
            with flow.record("range", "workbench.gc.2"):
                flow.spend(length, "garbage_collection")

    def compile(self) -> None:
        """Dynamo and Inductor, with a module that is loaded and a kernel that is tried."""
        flow, length = self.flow, self.fault("compile")
        name = "_compile.compile_inner (dynamo_timed)"
        with flow.record("operator", name, cause="compilation"):
            flow.spend(length)
            with flow.record("operator", "inductor_compile", cause="compilation"):
                with flow.operator("aten::empty"):
                    flow.spend(self.host())
                flow.spend(self.fault("compile"))
                flow.call("module_load", self.draw.ns(50 * US, 200 * US), "kernel_loading")
                if self.draw.chance(0.5):
                    flow.launch("triton_poi_fused_0", self.draw.ns(*self.plan.kernel))
                    flow.synchronize("device_sync", cause="compilation")
            flow.spend(self.host())
        with flow.record("range", "Torch-Compiled Region: 0/0", cause="host_operators"):
            flow.spend(self.host())
            flow.launch("triton_poi_fused_0", self.draw.ns(*self.plan.kernel))

    def capture(self) -> None:
        """A graph is captured: launches that reach no device."""
        flow = self.flow
        flow.call("begin_capture", self.draw.ns(3 * US, 10 * US), "graph_capture")
        spent, length = 0, self.fault("capture")
        while spent < length:
            with flow.operator("aten::mul"):
                piece = self.draw.ns(20 * US, 200 * US)
                flow.spend(piece, "graph_capture")
                flow.call("launch", self.draw.ns(2 * US, 4 * US), "graph_capture")
                spent += piece
        flow.call("end_capture", self.draw.ns(10 * US, 50 * US), "graph_capture")
        flow.call("instantiate", self.draw.ns(100 * US, 2 * MS), "graph_capture")
        self.graph = True

    def replay(self) -> None:
        """A graph of many kernels in one launch."""
        self.flow.launch(
            "vectorized_elementwise_kernel", self.draw.ns(2 * US, 20 * US),
            api="graph_launch", count=self.draw.randint(5, 30),
        )  # fmt: skip

    def unrecorded(self) -> None:
        """Work that the trace does not hold, such as a graph launched before the capture."""
        work = self.flow.launch("hidden", self.draw.ns(2 * MS, 30 * MS), api="hidden")
        work.visible = False
        if self.draw.chance(0.5):
            self.flow.synchronize("device_sync")

    def collective(self) -> None:
        """An all-reduce on a stream of its own; what follows waits for it."""
        flow = self.flow
        with flow.operator("c10d::allreduce_"), flow.operator("record_param_comms"):
            flow.spend(self.host())
            last = self.machine.device.works[-1]
            flow.launch(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                self.fault("collective"), stream=20, after=(last,),
            )  # fmt: skip
        flow.call("wait_event", self.draw.ns(1 * US, 2 * US), "host_operators")

    def prefetch(self) -> None:
        """A thread of its own that sends batches ahead, now and then."""
        flow = Flow(self.machine, PREFETCH, stacks=False)
        for _ in range(self.plan.steps):
            flow.spend(self.draw.ns(3 * MS, 8 * MS))
            flow.launch(
                "Memcpy HtoD (Pinned -> Device)", self.draw.ns(10 * US, 60 * US),
                kind="memcpy", api="copy", stream=30,
            )  # fmt: skip

    # parts

    def operator(
        self,
        name: str,
        *,
        inner: str | None = None,
        sequence: int | None = None,
        **where: Any,
    ) -> None:
        """An operator that launches one kernel."""
        flow = self.flow
        args = {} if sequence is None else {"sequence": sequence}
        with flow.operator(name, **args):
            flow.spend(self.host())
            if inner:
                with flow.operator(inner):
                    flow.spend(self.host())
                    self.kernel(**where)
            else:
                self.kernel(**where)
            flow.spend(self.host())

    def kernel(self, **where: Any) -> None:
        """One kernel, which may have to be loaded first, or meet a full buffer of the profiler."""
        loading = flush = 0
        name = self.draw.choice(KERNELS)
        if self.happens("first launch", 0.05):
            self.seen += 1
            name = f"kernel_of_its_own_{self.seen}"
            loading = max(self.fault("first launch"), 2 * MS)
        if self.happens("module load", 0.05):
            self.flow.call("module_load", self.fault("module load"), "kernel_loading")
        if self.happens("flush", 0.05):
            flush = self.draw.ns(50 * US, 2 * MS)
        self.flow.launch(
            name, self.draw.ns(*self.plan.kernel), loading=loading, flush=flush, **where
        )

    def python(self) -> None:
        """The user's own code."""
        self.flow.spend(self.draw.ns(*self.plan.python))

    def host(self) -> int:
        """Host time of a part of an operator."""
        low, high = self.plan.operator
        return self.draw.ns(low / 3, high / 3)

    def happens(self, fault: str, share: float = 0.5) -> bool:
        """Whether a fault strikes now."""
        return fault in self.plan.faults and self.draw.chance(share)

    def fault(self, name: str) -> int:
        """How long it lasts."""
        return self.draw.ns(*self.plan.faults[name])


KERNELS = (
    "ampere_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
)
