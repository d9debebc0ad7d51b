"""Effects that are taken out of the times before the model is fitted: kinds of NICs, allocations."""
