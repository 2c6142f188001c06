"""The room sampling."""
