"""`python -m satkgc`."""

from satkgc.cli import main

main()
