"""The wire types of the Context Engine Protocol, one module per method area."""
