"""How a job scales with its ranks: what was measured, a model of it, and what it predicts."""
