"""From what Hadoop and the tracer left to records: parsers, profiles, and stored files."""
