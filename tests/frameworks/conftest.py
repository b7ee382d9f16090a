"""Agent frameworks are in an environment of their own: `make host-frameworks` runs the tests inside them."""

from importlib.util import find_spec

FRAMEWORKS = {"langchain": "test_langchain*.py"}

collect_ignore_glob = [files for module, files in FRAMEWORKS.items() if find_spec(module) is None]
