"""How large the loss of a component is, and how large it must be to be named."""
