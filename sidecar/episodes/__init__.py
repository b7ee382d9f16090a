"""What happened in a turn, kept until a back end outside of the store has taken it."""
