"""What to do about it: drain commands, a list of hosts without suspects, the text of a ticket. Printed, never done."""
