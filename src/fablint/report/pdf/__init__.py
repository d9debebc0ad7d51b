"""The report as a PDF: what an acceptance engineer reads, prints and signs."""
