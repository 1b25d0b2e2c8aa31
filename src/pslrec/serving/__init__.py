"""A finished run as a web service. Not written yet."""
