"""The room evaluation."""
