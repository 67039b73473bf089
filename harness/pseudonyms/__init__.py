"""What is published of a run, with pseudonyms in the place of names that are not for the public."""
