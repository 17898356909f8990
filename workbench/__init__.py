"""See where every microsecond of a PyTorch training step goes, flip a switch, and know if it helped."""
