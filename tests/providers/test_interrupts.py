"""
Tests for `harness.clusters.state`: real signals to this process.
"""

import os
import signal
import threading

import pytest

from harness.clusters.state import SIGNALS, DeferredInterrupt


def interrupt(number=signal.SIGINT):
    """
    A signal, which has arrived when this returns.
    """
    os.kill(os.getpid(), number)


class TestDeferredInterrupt:
    def test_takes_effect_when_the_block_is_over(self):
        """
        All of the block is done, and then the program is interrupted.
        """
        done = []

        with pytest.raises(KeyboardInterrupt), DeferredInterrupt() as block:  # noqa: PT012 - the block is what is tested
            interrupt()
            interrupt()
            done.append(block.is_pending)

        assert done == [True]

    def test_more_signals_than_its_patience_take_effect_at_once(self):
        """
        The second one cuts a block that lets one wait; each that waits is notified.
        """
        notified = []
        done = []

        with (  # noqa: PT012 - the block is what is tested
            pytest.raises(KeyboardInterrupt),
            DeferredInterrupt(patience=1, notify=lambda: notified.append(1)),
        ):
            interrupt()
            done.append("once")
            interrupt()
            done.append("twice")

        assert (done, notified) == (["once"], [1])

    def test_handlers_are_restored(self):
        """
        Before and after the block a signal does what it did, and nothing waits.
        """
        before = [signal.getsignal(n) for n in SIGNALS]

        with DeferredInterrupt() as block:
            pass

        assert [signal.getsignal(n) for n in SIGNALS] == before
        assert not block.is_pending

    def test_nested_blocks(self):
        """
        What the inner one let wait, the outer one does too.
        """
        done = []

        with pytest.raises(KeyboardInterrupt), DeferredInterrupt():  # noqa: PT012 - the block is what is tested
            with DeferredInterrupt():
                interrupt()
                done.append("inner")
            done.append("outer")

        assert done == ["inner", "outer"]

    def test_a_block_can_be_used_again(self):
        """
        One that was used can be used again, and has forgotten what was.
        """
        block = DeferredInterrupt()
        with pytest.raises(KeyboardInterrupt), block:
            interrupt()

        with block:
            assert not block.is_pending

    def test_an_error_is_raised_before_the_signal(self):
        """
        What goes wrong in the block is more telling than who was impatient.
        """
        with pytest.raises(ValueError, match="telling"), DeferredInterrupt():  # noqa: PT012
            interrupt()
            raise ValueError("telling")

    def test_an_ignored_signal_stays_ignored(self):
        """
        A signal without a handler of Python's is left alone.
        """
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with DeferredInterrupt() as block:
                interrupt(signal.SIGHUP)
                assert not block.is_pending
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_does_nothing_in_another_thread(self):
        """
        Signals come to the main thread; elsewhere the block is an ordinary one.
        """
        done = []

        def work():
            with DeferredInterrupt() as block:
                done.append(block.is_pending)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

        assert done == [False]
