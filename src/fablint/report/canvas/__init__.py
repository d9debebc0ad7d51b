"""What draws the drawings: one interface, a back end each for the page (SVG), the PDF and pictures (PNG)."""
