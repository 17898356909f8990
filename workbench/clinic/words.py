"""What to ask about each planted fault, and what the answer is."""

WORDS = {
    "slow_decode": (
        "The model takes 20 ms for a batch, and a step about twice that. What else does it do?",
        "It waits for its batch: each sample is decoded in the training process, which keeps a "
        "processor busy. Worker processes decode beside the training.",
    ),
    "slow_storage": (
        "Steps are slow, and yet the processors have almost nothing to do. Who is busy?",
        "Nobody: each sample waits for storage to answer. Workers wait side by side, and as "
        "waiting needs no processor, there may be more of them than processors.",
    ),
    "slow_collate": (
        "A single sample takes next to no time. Why is a batch of sixteen so slow?",
        "The collate function builds the tensor number by number. Stack arrays or tensors "
        "instead; worker processes hide the cost without removing it.",
    ),
    "row_wise_table": (
        "All data is in memory, and loading is the bottleneck. Would workers help?",
        "No: a row costs microseconds of Python, and handing batches over costs more. Fetch the "
        "whole batch with one index call (__getitems__).",
    ),
    "startup_each_epoch": (
        "Every twelfth step is slow by a large margin. What happens there?",
        "A new epoch: worker processes are started again and take long to get ready. Keep them "
        "alive between epochs.",
    ),
    "oversubscription": (
        "Two workers load less than one process does. What are they busy with?",
        "Taking processors from each other: every worker runs a pool of threads as if it had "
        "the machine for itself. One thread in each worker is enough.",
    ),
    "one_slow_worker": (
        "Every other batch is late, though all samples are alike. Where is it made?",
        "From one worker that is slower than the other. Batches are delivered in order, so the "
        "loop waits for it; out of order, the quick one does more of the work.",
    ),
    "many_small_tensors": (
        "The worker is idle and the step waits all the same. Who is keeping it waiting?",
        "The hand-over: each of a batch's many tensors crosses between processes by itself. "
        "Pack them into one tensor, or load in the training process.",
    ),
    "pinning_cost": (
        "Page-locked memory makes copies faster. Does it make this loop faster?",
        "No: one thread copies each of a batch's many tensors by itself, and the loop waits for"
        " that thread. Pack them into one tensor, or do without pinning.",
    ),
}
"""Question and answer by the name of the fault."""
