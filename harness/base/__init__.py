"""What everything stands on: the nouns, pure knowledge of Hadoop, statistics, and documents."""
