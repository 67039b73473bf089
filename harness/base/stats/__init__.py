"""Numbers that know no Hadoop word: robust fits, bootstrap, spread."""
