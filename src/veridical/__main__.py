"""`python -m veridical`."""

from veridical.cli.app import main

main()
