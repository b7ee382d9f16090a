"""What the model is told about the log, the tags, and the tool that looks things up."""

TEACHING = (
    "End every answer with one <terse> tag that records in one line what was done, for example "
    "<terse>Moved date parsing into dates.py; strict ISO only, since the API sends nothing else</terse>. "
    "Name the key decisions and why they were made, and the files, ids and values that will matter later; "
    'something like "updated the page" is of no use. The user never sees the tag. '
    "Earlier turns are shown to you as these lines only, under the heading [Context -- Activity Log]. "
    "Nothing is lost: when a line does not say enough, call context_search rather than guess or ask again, "
    'with mode "search" for exact words, "relevant" for a question, "turn" for everything in a turn such '
    "as t7."
)
ACKNOWLEDGEMENT = "Noted. I go by the log, and look up what I need of earlier turns with context_search."
