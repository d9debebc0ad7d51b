"""Workflows: the only floor that composes stages. A stage never imports another stage."""
