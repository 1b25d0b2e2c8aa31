"""The tables and figures of the paper, our number beside the published one. Not written yet."""
