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
    "list_to_tensor": (
        "Samples are arrays already, and reading one is quick. What takes so long in a batch?",
        "torch.tensor reads a list of arrays number by number. Stack them first (np.stack, then "
        "torch.from_numpy), which copies each in one go.",
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
    "tiny_batch": (
        "The device is fast and mostly idle. What would give it more to do per launch?",
        "A larger batch: a step of two samples launches as many kernels as one of a hundred, and "
        "launching takes longer than computing.",
    ),
    "sync_in_loop": (
        "The loop reads a few numbers, to print them. What does the device do meanwhile?",
        "It runs dry: .item() makes the host wait until all work is done, and nothing new was "
        "launched. Keep numbers on the device and read them every so many steps.",
    ),
    "single_tensor_optimizer": (
        "The network is small, and half of a step is neither forward nor backward. What is it?",
        "The optimizer, which updates parameter after parameter with a dozen operators each. "
        "fused=True does it in one.",
    ),
    "recompiles": (
        "A compiled model is slower than the plain one. What happens in its slow steps?",
        "It is compiled again for every new length of its input. Let sizes be dynamic, or pad "
        "to a few lengths.",
    ),
    "logging_every_step": (
        "The model takes a millisecond. Who takes the rest of the step?",
        "Python code after the step, which writes out weights number by number. Do it every so "
        "many steps.",
    ),
    "garbage_collection": (
        "Each step ends with a pause in which no operator runs. Who asked for it?",
        "gc.collect() in the loop: it looks at every object that the program holds. Leave it out, "
        "or call gc.freeze() after set-up.",
    ),
    "misaligned_matmul": (
        "Half precision gains less than was hoped. What is odd about the sizes of the layers?",
        "509 features are no multiple of 8, which fast kernels take whole. Use 512.",
    ),
    "repeated_casts": (
        "A layer is used twelve times in a pass under autocast. How often are its weights cast?",
        "Twelve times: each region of autocast begins with an empty cache. One region around the "
        "whole pass casts once.",
    ),
    "straggler": (
        "Both ranks do the same work, and communication takes most of a step. Is the link slow?",
        "No: one rank comes late, and the other waits for it inside the collective. Look at what "
        "the late rank does outside of it.",
    ),
    "extra_syncs": (
        "Four micro-batches make one step. How often do the ranks have to average gradients?",
        "Once, after the last; here it is done after each. Wrap the others in model.no_sync().",
    ),
    "retained_graph": (
        "Memory grows from step to step, though no tensor is kept. What is kept?",
        "Losses with the graph behind each, and with it all activations. Keep loss.item() or "
        "loss.detach().",
    ),
}
"""Question and answer by the name of the fault."""
