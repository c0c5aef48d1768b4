"""What explanations cost: against one forward pass, against other libraries, in memory and at start-up."""

import os

from veridical.cli.speech import ENVIRONMENT

# As on the command line, for every contender alike. It has to be set before torch is imported.
for _name, _value in ENVIRONMENT.items():
    os.environ.setdefault(_name, _value)
