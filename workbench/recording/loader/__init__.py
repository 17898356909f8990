"""Probes in the data loader: what every worker did for every batch, on one clock.

They are put on while a run measures and taken off afterwards. Worker processes are entered through
the way they are started, so data set, sampler and functions stay the user's own objects.
"""
