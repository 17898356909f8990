"""Drive torch.profiler safely and measure what it cannot see: the step without it."""
