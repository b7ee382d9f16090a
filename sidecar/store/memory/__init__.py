"""The session store in memory."""
