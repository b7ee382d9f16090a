"""Tools that a host may offer to its model."""
