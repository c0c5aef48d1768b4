"""Python imports this first of all where this folder is on its path: so are the workers of a grid made mortal."""

import killing

killing.arm_worker()
