"""A store over dictionaries: the rules of stores at their simplest, for tests to break."""
