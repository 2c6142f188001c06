"""The room analysis."""
