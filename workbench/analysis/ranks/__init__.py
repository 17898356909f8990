"""Several ranks of one job: their collectives matched, one clock, wait and transfer, stragglers."""
