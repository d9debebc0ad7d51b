"""From detections to findings in the words of the verdict."""
