"""Records to text."""
