"""The command `abreast`: the program's own command line, in this interpreter."""

import os
import sys
from typing import NoReturn

from . import _abreast


def main() -> NoReturn:
    """Run the command that the arguments of the process ask for, and exit with its code."""
    words = sys.argv[1:]
    serves = bool({"serve", "hub"}.intersection(words))
    if serves and sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        # A server with many heaps needs a multiple of its memory; glibc reads this once, at the start.
        environment = dict(os.environ, MALLOC_ARENA_MAX="2")
        os.execve(sys.executable, [sys.executable, "-m", "abreast", *words], environment)
    sys.exit(_abreast.command(["abreast", *words]))


if __name__ == "__main__":
    main()
