"""What the exposed wait for input was spent on: the stages of the batch that was waited for."""
