"""Models that score answers."""
