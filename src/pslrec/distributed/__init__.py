"""Process groups; neutral when there is one process. Not written yet."""
