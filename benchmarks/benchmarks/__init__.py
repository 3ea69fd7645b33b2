"""asv benchmarks of byzadmm: one file per area, sizes and data in ``common``."""
