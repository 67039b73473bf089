"""Settings of all tests."""

import signal

from hypothesis import settings

# A shell's background job is started with these signals ignored, and whoever waits for one waits
# for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Other work on the machine, and the first import of a large library, are no fault of an example.
settings.register_profile("harness", deadline=None)
settings.load_profile("harness")
