"""Sessions while they are in use: what is cached of them, and how engines see them."""
