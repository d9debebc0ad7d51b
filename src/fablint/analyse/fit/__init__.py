"""What a healthy pair takes, and what each component adds."""
