"""The Hadoop home: one folder with every jar of a cluster, and the Java that runs it."""
