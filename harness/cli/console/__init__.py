"""What commands share: talk on stderr, answers on stdout, options, completion."""
