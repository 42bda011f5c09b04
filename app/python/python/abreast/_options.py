"""Options of functions as words of the command line."""

import os
from typing import Dict, List, Sequence, Union

from ._errors import UsageError

#: The value of an option: a flag, a text or number, or several for an option that can be repeated.
Option = Union[None, bool, str, int, float, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def words_of(options: Dict[str, Option], places: Sequence[Union[str, "os.PathLike[str]"]]) -> List[str]:
    """The words of the command line for options and places."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple, set, frozenset)):
            words.extend(f"{flag}={os.fspath(each)}" for each in value)
        elif isinstance(value, (str, int, float, os.PathLike)):
            words.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        else:
            raise UsageError(f"the value of `{name}` is a {type(value).__name__}",
                             help="expected True, a text, a number, a path, or a list of texts")
    words.append("--")
    words.extend(os.fspath(place) for place in places)
    return words
