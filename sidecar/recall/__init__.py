"""Finds in a history what a situation calls for; shared by engines, tools and memory."""
