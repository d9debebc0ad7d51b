"""What the pictures of a report show, as numbers and names of colours: plots, matrices, histograms, the topology."""
