"""A finished run becomes lists, similar items and vectors of new users. Not written yet."""
