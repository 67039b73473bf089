"""A document of blocks, and the formats that render it: nothing here knows what is reported."""
