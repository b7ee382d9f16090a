"""A local web page that shows what a model saw of a session, why, and what it cost."""
