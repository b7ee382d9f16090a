"""English words that say nothing about what is looked for."""

_LISTED = """
a about after again all also am an and any are as at be been before being both but by can could did do does
doing done each few for from further get got had has have having he her here hers him his how i if in into is
it its itself just let like ll may me might more most must my no nor not now of off on once only or other our
ours out over own please re same shall she should so some such tell than that the their theirs them then there
these they this those through to too under until up us ve very was we were what when where which while who
whom whose why will with would you your yours
"""

STOP_WORDS = frozenset(_LISTED.split())
"""Left out of a query as long as anything else is in it."""
