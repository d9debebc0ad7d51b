"""Detection of faulty components."""
