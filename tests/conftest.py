"""Settings of all tests."""

from hypothesis import settings

# Other work on the machine, and the first import of a large library, are no fault of an example.
settings.register_profile("harness", deadline=None)
settings.load_profile("harness")
