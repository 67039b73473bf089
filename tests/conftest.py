"""Settings of all tests."""

import signal

from hypothesis import settings

# A shell's background job is started with these signals ignored, and whoever waits for one waits
# for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Other work on the machine, and the first import of a large library, are no fault of an example.
settings.register_profile("fast", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("fast")  # another one: pytest --hypothesis-profile thorough
