"""What the switches change, as one frozen record; ``None`` always means *as the user has it*."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from workbench.errors import SettingError
from workbench.settings.checks import checked
from workbench.settings.parallel import Parallel, ParallelMode

Precision = Literal["fp32", "tf32", "bf16", "fp16", "bf16_pure", "fp8"]
MatmulPrecision = Literal["highest", "high", "medium"]
CompileMode = Literal["default", "reduce-overhead", "max-autotune"]
Attention = Literal["flash", "efficient", "cudnn", "math"]
OptimizerLoop = Literal["foreach", "fused", "single"]
StartMethod = Literal["fork", "forkserver", "spawn"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that a switch can change for a run.

    A field left at ``None`` is not touched. The record checks itself once, when it is made;
    whether a setting can act on a given model, loader or machine is checked when it is applied.
    Shuffling, samplers, generators and seeds stay the user's under every setting.
    """

    precision: Precision | None = None
    """How numbers are computed: fp32, tf32, bf16, fp16, bf16_pure or fp8.

    Does: fp32 switches autocast and TF32 off; tf32 lets matrix products of fp32 numbers use tensor
    cores; bf16 and fp16 run the forward pass under autocast, fp16 with gradient scaling; fp8 is
    bf16 whose linear layers multiply in fp8, forward and backward. With these the weights keep
    their dtype. bf16_pure keeps weights, buffers, gradients and optimizer state in bf16 for the
    run, and gives back the exact fp32 ones after it.
    Helps: where matrix products and convolutions take most of the time, and to save memory.
    Hurts: on models of many small operators (casts are added); fp16 can overflow; all round more,
    bf16_pure most: small updates of large weights are lost.
    Needs: instructions for the dtype. fp16 is refused on a CPU that has none, bf16 is noted; tf32
    needs an NVIDIA device of compute capability 8.0 or later, fp8 of 8.9 or later and linear layers
    whose sizes are multiples of 16. fp16 scales gradients, so a step of the user's own must take
    ``control``.
    """
    matmul_precision: MatmulPrecision | None = None
    """How exact a product of two fp32 matrices is: highest, high or medium.

    Does: ``torch.set_float32_matmul_precision``. highest multiplies in fp32; high may use TF32 or
    sums of bf16 products; medium may use single bf16 products.
    Helps: on tensor cores, and medium on CPUs with bf16, without any cast in the model.
    Hurts: products keep 10 (TF32) or 7 (bf16) bits of each number instead of 23.
    Needs: hardware with such a mode; elsewhere nothing changes, which is noted.
    """
    autocast_cache: bool | None = None
    """Keep the casts of weights within one autocast region.

    Does: a weight that is used several times is cast once.
    Helps: weights that are used again in the same forward pass (recurrent layers, tied weights,
    accumulation under one autocast).
    Hurts: the copies take memory until the region ends.
    Needs: autocast: precision bf16 or fp16, or a region of the user's own.
    """
    loss_scale: float | None = None
    """The factor that gradient scaling starts with; torch's own is 65536.

    Does: the loss is multiplied by it before backward, gradients are divided by it after.
    Helps: lower, where the first steps overflow and are skipped.
    Hurts: too low, and small gradients vanish in fp16; it doubles only every 2000 steps.
    Needs: precision fp16.
    """
    compile: bool | CompileMode | None = None
    """Run the model through ``torch.compile``; False runs a compiled model as plain code.

    Does: True and default compile as torch does by itself; reduce-overhead also replays CUDA
    graphs; max-autotune also measures variants of its kernels.
    Helps: many small operators in a row, which become few kernels.
    Hurts: the first steps take seconds to minutes (max-autotune the longest); changing shapes
    compile again; reduce-overhead holds more memory.
    Needs: a C++ compiler and Python's headers on a CPU, Triton on a GPU; a model that is not
    compiled yet.
    """
    compile_dynamic: bool | None = None
    """Compile for shapes that change (True) or for each shape by itself (False).

    Does: ``torch.compile(dynamic=)``; left out, a shape that changes once is made dynamic.
    Helps: True, where batches differ in length and every length compiled again.
    Hurts: code for any shape is slower than code for one; False compiles again for each shape.
    Needs: ``compile``.
    """
    compile_fullgraph: bool | None = None
    """Accept no graph break: the whole model must be one graph.

    Does: a break ends the run with the line that caused it, instead of running that part as plain
    code.
    Helps: to find breaks; to be sure that nothing runs uncompiled.
    Hurts: nothing in speed.
    Needs: ``compile``, and a model that gives one graph.
    """
    cudnn_benchmark: bool | None = None
    """Let cuDNN measure its convolution algorithms and take the fastest for each shape.

    Helps: convolutions on batches of one size.
    Hurts: shapes that change are measured again and again; results may differ between runs.
    Needs: an NVIDIA device.
    """
    cuda_graphs: bool | None = None
    """Record the model's kernels once and replay them as one launch.

    Does: forward and backward of the model are captured by ``torch.cuda.make_graphed_callables``,
    or by the compiler where ``compile`` is set.
    Helps: many short kernels, where the device waits for launches.
    Hurts: inputs are copied into fixed memory, which stays taken.
    Needs: a CUDA device, batches of one shape, a model without data-dependent control flow or
    synchronization.
    """
    channels_last: bool | None = None
    """Keep 4-d weights and inputs in channels-last memory order; False: in the plain order.

    Helps: convolutions on tensor cores, and on CPUs with bf16.
    Hurts: models that view or flatten their activations pay copies between the orders.
    Needs: a model with 4-d weights.
    """
    attention: Attention | None = None
    """Which kernel ``scaled_dot_product_attention`` may use: flash, efficient, cudnn or math.

    Does: ``torch.nn.attention.sdpa_kernel`` around the step; torch raises where the kernel cannot
    take the inputs.
    Helps: flash and efficient do not store the attention matrix; which is fastest depends on
    shapes and device.
    Hurts: math stores the whole matrix.
    Needs: a model that calls scaled_dot_product_attention, and a device that has the kernel: a CPU
    has flash and math.
    """
    checkpointing: tuple[str, ...] | None = None
    """Blocks whose activations are computed again in backward, by module type or qualified name.

    Does: ``torch.utils.checkpoint`` around these modules. Numbers stay the same: random states are
    kept for dropout, and running statistics of batch norm count once.
    Helps: memory; with the memory saved a larger batch may fit.
    Hurts: the forward pass of the chosen blocks runs twice, about a third of a step more when it
    is all of them.
    Needs: modules whose forward has no side effects but their buffers (a hook inside a block runs
    twice), and a backward pass.
    """
    accumulation: int | None = None
    """Micro-batches per optimizer step.

    Does: each batch of the loader is cut into this many parts; each runs forward and backward by
    itself, and its loss counts by its share of the samples, so that the gradient of a mean loss
    stays that of the whole batch. One step stays one batch and one optimizer step. For a larger
    effective batch raise ``batch_size`` with it.
    Helps: activations take about that many times less memory.
    Hurts: shorter kernels and more launches; batch norm sees the micro-batches.
    Needs: tensors with a common first dimension; a step of one's own must take ``control``.
    """
    clip_norm: float | None = None
    """Limit the norm of all gradients together to this, before each optimizer step.

    Does: ``torch.nn.utils.clip_grad_norm_`` over the parameters of each optimizer, once per
    optimizer step: after all micro-batches, and after fp16 gradients were scaled back.
    Helps: to keep training stable under larger batches and lower precision.
    Hurts: one pass over all gradients; it changes the training where it acts.
    Needs: an optimizer; a step of one's own must take ``control``.
    """
    optimizer: OptimizerLoop | None = None
    """How the optimizer goes over its parameters: foreach, fused or single.

    Does: foreach updates many tensors per kernel, fused does a whole update in one kernel, single
    goes parameter by parameter. The mathematics stay the same.
    Helps: foreach and fused, where many small parameters make many launches.
    Hurts: foreach holds temporaries as large as the gradients.
    Needs: an optimizer of torch that has such a loop; fused also a device that has the kernel.
    """
    set_to_none: bool | None = None
    """Let ``zero_grad`` drop gradients (True) or fill them with zeros (False).

    Helps: True saves a kernel per parameter and the memory between steps; it is torch's default.
    Hurts: False reads and writes every gradient once more.
    Needs: a step of one's own must take ``control`` and call ``control.zero_grad``.
    """
    batch_size: int | None = None
    """Samples per batch.

    Does: a copy of the loader makes batches of this size. The learning rate is never changed with
    it: a note names the rule (SGD: in proportion; Adam: by the square root) and leaves it to you.
    Helps: larger, where kernels are short and the device waits for the host; smaller, to save
    memory.
    Hurts: memory grows with it, and the optimizer steps less often per epoch.
    Needs: a ``Dataset`` or a plain ``DataLoader`` without a batch sampler of its own.
    """
    workers: int | None = None
    """Data-loader worker processes; 0 loads in the training process.

    Helps: where the step waits for input and CPUs are free.
    Hurts: beyond the usable CPUs; each worker takes memory, and starting them takes time at every
    epoch (see ``persistent_workers``).
    Needs: a ``Dataset`` or a plain ``DataLoader``. An iterable data set must divide itself
    by ``torch.utils.data.get_worker_info()``, otherwise every worker reads all of it; more than one
    worker is refused for one that does not.
    """
    prefetch_factor: int | None = None
    """Batches that each worker holds ready.

    Helps: where the time to load a batch varies much.
    Hurts: memory and shared memory hold workers × prefetch_factor batches.
    Needs: at least one worker.
    """
    pin_memory: bool | None = None
    """Copy batches to page-locked memory, from which a device copies faster.

    Helps: where copies to the device take time; with ``non_blocking`` they overlap with compute.
    Hurts: a thread and a copy more on the host; page-locked memory cannot be swapped.
    Needs: an accelerator on which the model runs.
    """
    persistent_workers: bool | None = None
    """Keep workers alive between epochs.

    Helps: short epochs, and where workers start by spawn.
    Hurts: memory of the workers stays taken; what they cached of the data set goes stale.
    Needs: at least one worker.
    """
    non_blocking: bool | None = None
    """Let copies to the device overlap with the host.

    Helps: where the host waits for copies.
    Hurts: nothing, as long as the batch is not written to before the copy is done.
    Needs: an accelerator and pinned memory; a step of one's own must take ``control``.
    """
    drop_last: bool | None = None
    """Leave out the last batch of an epoch when it is smaller than the others.

    Helps: compiled models and CUDA graphs, for which another shape means another compilation.
    Hurts: up to a batch of samples is not seen in an epoch.
    Needs: a ``Dataset`` or a plain ``DataLoader`` without a batch sampler of its own.
    """
    batched_fetch: bool | None = None
    """Ask the data set for a whole batch at once instead of sample by sample.

    Does: True uses the data set's ``__getitems__``, or gives a ``TensorDataset`` one that indexes
    its tensors once per batch; False asks sample by sample.
    Helps: rows of tensors, arrays and tables, where asking costs more than reading.
    Hurts: nothing, where the samples are the same.
    Needs: a data set with ``__getitems__`` (Hugging Face datasets), or a ``TensorDataset`` with
    torch's own collate function; elsewhere nobody could tell that the batch is the same.
    """
    in_order: bool | None = None
    """Give batches in the sampler's order (True), or as workers finish them (False).

    Helps: False, where single samples take much longer than others.
    Hurts: False makes the order differ from run to run.
    Needs: at least one worker.
    """
    multiprocessing_context: StartMethod | None = None
    """How workers start: fork, forkserver or spawn.

    Helps: forkserver and spawn, where the process holds threads or a device that a fork breaks;
    fork starts fastest and shares what is loaded.
    Hurts: spawn and forkserver import everything again and need parts that pickle; torch moves
    tensors of the data set to shared memory for them, where they stay.
    Needs: at least one worker; fork does not exist on Windows.
    """
    threads: int | None = None
    """Threads that one operator may use on the CPU.

    Does: ``torch.set_num_threads`` for the run.
    Helps: fewer, where workers and training compete for CPUs or operators are small; more, where
    large operators find CPUs free.
    Hurts: more than there are usable CPUs.
    """
    interop_threads: int | None = None
    """Threads on which independent operators run side by side.

    Does: ``torch.set_num_interop_threads``, which torch allows once in a process and before the
    first parallel work.
    Helps: models that fork work with ``torch.jit.fork``; others do not use it.
    Hurts: it cannot be put back: the number stays until the process ends, which a note says.
    Needs: a fresh process; refused where torch has fixed the number.
    """
    worker_threads: int | None = None
    """Threads that one operator of torch or OpenCV may use inside each worker; torch's own is 1.

    Helps: large decodes with torch operators, where CPUs are free.
    Hurts: workers × threads beyond the usable CPUs.
    Needs: at least one worker.
    """
    cpu_affinity: tuple[int, ...] | None = None
    """The CPUs that this process and its workers may run on.

    Helps: where other work shares the machine, or memory lies nearer to some CPUs.
    Hurts: fewer CPUs for the same work.
    Needs: Linux, and CPUs that this process is allowed to use.
    """
    device: str | None = None
    """Where to run: cpu, cuda:N, xpu or mps.

    Does: model, loss and optimizer state are moved for the run and given back in their old place.
    Helps: to compare devices.
    Hurts: memory is taken on both while the run lasts.
    Needs: a device that is there, and a model that lies on one device. A step of one's own gets its
    batches on the device.
    """
    parallel: Parallel | ParallelMode | None = None
    """Spread the work over devices or processes: none, dp, ddp, fsdp, tp or pp, or a ``Parallel``.

    Does: ``wb.profile`` starts fresh processes, gives each the same weights and its share of every
    batch (ddp, fsdp) or of the model (tp, pp), and records all of them into one Run. Batches and
    samples stay those of one process. Your own model, optimizer and random states stay as they are.
    Helps: where one device is busy throughout, and where a model does not fit into one.
    Hurts: gradients or activations travel in every step; batch norm sees a rank's share of a batch.
    Needs: as many devices (on a CPU: processors) as ranks, and parts that cloudpickle can carry.
    dp is there to be compared with: it copies the model in every step, and ddp is faster.
    """

    def __post_init__(self) -> None:
        for name, value in checked({f.name: getattr(self, f.name) for f in fields(self)}).items():
            object.__setattr__(self, name, value)

    @property
    def ranks(self) -> Parallel | None:
        """How the work is spread over processes; ``None`` where one process does it all."""
        parallel = self.parallel
        return parallel if isinstance(parallel, Parallel) and parallel.spreads else None

    def changes(self) -> dict[str, Any]:
        """The fields that are set, in the order of the record."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary with only the fields that are set; several values as a list."""
        return {k: _plain(v) for k, v in self.changes().items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Settings":
        """The record that :meth:`to_json` wrote; an unknown name is an error."""
        if not isinstance(values, dict):
            raise SettingError(
                f"settings are a dictionary of names and values, not a {type(values).__name__}."
            )
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise SettingError(
                    f"unknown setting {name!r}; known are {', '.join(sorted(known))}."
                )
        return cls(**values)

    def __str__(self) -> str:
        return ", ".join(f"{k}={_word(v)}" for k, v in self.changes().items()) or "as it is"


def _plain(value: Any) -> Any:
    if isinstance(value, Parallel):
        return value.to_json()
    return list(value) if isinstance(value, tuple) else value


def _word(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
