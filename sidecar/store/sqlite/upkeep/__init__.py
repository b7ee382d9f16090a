"""Looking after a store file: checks, copies, sizes, what can be saved of a damaged one."""
