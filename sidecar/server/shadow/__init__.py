"""Lets a second engine answer the same requests, behind the answers; nothing of it is sent or stored."""
