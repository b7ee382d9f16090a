"""Context engines for every agent runtime, behind one stdio protocol."""

__version__ = "0.1.0"
