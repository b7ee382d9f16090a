"""Episodes: the content of turns, buffered until an external back end has taken it."""
