"""What every room of the package uses and nobody outside should: checks, files, words, progress."""
