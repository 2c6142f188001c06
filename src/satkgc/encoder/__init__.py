"""The room encoder."""
