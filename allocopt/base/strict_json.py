"""JSON files, read strictly: no key twice, and what is wrong is said with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from allocopt.base.errors import InvalidFile

__all__ = ["read_json"]


def read_json(source: Path, refusal: type[InvalidFile] = InvalidFile) -> Any:
    """A JSON file's content, or `InvalidFile` with what is wrong and where; a key that is there twice raises ``refusal``."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise refusal(f"{source}: the key {twice!r} is there twice; which one is meant?")
        return result

    try:
        return json.loads(source.read_text(encoding="utf-8-sig"), object_pairs_hook=once)
    except InvalidFile:
        raise
    except OSError as error:
        raise InvalidFile(f"{source}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidFile(f"{source}: expected JSON text, but it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise InvalidFile(
            f"{source}: not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise InvalidFile(f"{source}: not valid JSON: nested too deeply") from None
    except ValueError:
        raise InvalidFile(f"{source}: not valid JSON: it holds a number of thousands of digits") from None
