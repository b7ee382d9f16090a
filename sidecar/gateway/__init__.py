"""A local proxy that speaks a model's API and lets a context engine choose what the model sees."""
