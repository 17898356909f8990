"""One file for each thing that a setting changes for a run: changed here, and put back.

Every function takes an ``undo`` stack and enters there how to put back what it changes, before it
changes it. Most of it a :class:`~workbench.workload.snapshot.Snapshot` would put back too, but not
when the training of a run is kept.
"""
