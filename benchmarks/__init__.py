"""What explanations cost: against one forward pass, against other libraries, in memory and at start-up."""
