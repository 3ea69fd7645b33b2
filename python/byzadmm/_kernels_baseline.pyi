"""The kernels of the baseline instruction set (``cpp/kernels/module.cpp``); those of others are found by name."""

table: object

def supports(isa: str, /) -> bool: ...
