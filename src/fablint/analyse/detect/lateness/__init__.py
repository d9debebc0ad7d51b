"""Detection of components that delay or lose messages, where messages may take several paths."""
