"""Evidence, the search for faulty components, and follow-up measurements."""
