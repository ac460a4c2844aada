"""One thread for torch here too."""

from tests.nn.conftest import one_thread

__all__ = ["one_thread"]
