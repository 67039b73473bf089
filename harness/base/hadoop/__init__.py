"""Pure knowledge of Hadoop: site files, daemon command lines, slots, property names."""
