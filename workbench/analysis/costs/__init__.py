"""What operators must compute and move, counted from their shapes."""
