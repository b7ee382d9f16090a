"""The session store in one SQLite file."""
