"""The session store in PostgreSQL, which many processes on many hosts may share."""
