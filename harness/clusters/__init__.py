"""Providers: the only code that starts and stops anything."""
