"""The tables and figures of the paper, made again: cells from data files, our number beside the published one."""
