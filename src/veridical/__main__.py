"""`python -m veridical`."""

from veridical.cli import main

main()
