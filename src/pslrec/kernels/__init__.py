"""The engine room: fused operations in C++, each beside a plain twin that is the truth."""
