"""The room objective."""
