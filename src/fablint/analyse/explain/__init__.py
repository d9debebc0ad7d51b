"""Which candidates explain the slow, late, lost and missing cells."""
