"""A run from its checked record to its result: the two sides of a round, history, checkpoints, many runs at once."""
