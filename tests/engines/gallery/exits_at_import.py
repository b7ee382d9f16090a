"""A module that ends the program."""

import sys

sys.exit("I need a license")
