"""Internal helpers of the package: arrays, checks, descriptions, files, progress."""
