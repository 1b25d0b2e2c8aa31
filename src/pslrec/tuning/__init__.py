"""Search over the settings of a run, on validation data. Not written yet."""
