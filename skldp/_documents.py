"""Strict reader of JSON documents from untrusted parties."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# The deepest document is a domain within a constrained domain.
_DEEPEST = 30


def read_json(text: Any, what: str = "A document", *, integers: bool = False) -> Any:
    """Read JSON with unique names and finite numbers; with `integers`, only integers."""
    if not isinstance(text, str):
        raise ValueError(f"{what} must be text; got {type(text).__name__}.")
    too_deep = f"{what} must be nested at most {_DEEPEST} deep; got a deeper one."
    try:
        content = json.loads(
            text,
            object_pairs_hook=_each_once,
            parse_float=_refuse_fraction if integers else float,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise ValueError(too_deep) from None
    except ValueError as error:
        raise ValueError(f"{what} must be JSON; got an error: {error}.") from None
    level = [content]
    for _ in range(_DEEPEST):
        held = [one for one in level if isinstance(one, dict | list)]
        level = [inner for one in held for inner in (one.values() if isinstance(one, dict) else one)]
    if level:
        raise ValueError(too_deep)
    return content


def read_document(
    text: Any,
    kind: str,
    version: int | tuple[int, ...],
    names: Iterable[str],
    optional: Iterable[str] = (),
    *,
    integers: bool = False,
) -> dict[str, Any]:
    """Read a JSON object of this kind and version, or of one of these versions, with these names."""
    given = read_json(text, f"A {kind}", integers=integers)
    if not isinstance(given, dict) or given.get("skldp") != kind:
        raise ValueError(f'A {kind} must be a JSON document with "skldp": "{kind}"; got another document.')
    versions = (version,) if isinstance(version, int) else version
    # 1 is equal to True and to 1.0.
    if type(given.get("version")) is not int or given["version"] not in versions:
        known = " or ".join(map(str, versions))
        raise ValueError(f"A {kind} must be a document of version {known}; got another version.")
    check_names(given, f"A {kind}", {"skldp", "version", *names}, optional)
    return given


def check_names(given: Any, what: str, names: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Raise ValueError unless an object has these names and no others."""
    required = set(names)
    known = required | set(optional)
    if not isinstance(given, dict) or not required <= set(given) <= known:
        missing = sorted(required.difference(given)) if isinstance(given, dict) else []
        got = f"an object without {missing}" if missing else f"{type(given).__name__} with others"
        raise ValueError(f"{what} must be a JSON object with the names {sorted(known)} and no others; got {got}.")


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Convert errors from values of wrong types to ValueError."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"{what} must be an object with fields of its own types; got {type(error).__name__}."
        ) from None


def canonical_text(content: Any) -> str:
    """Return the canonical JSON text of a content without floats: sorted names, no spaces, no needless escapes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical text of a document without its own ``"sha256"``, in hexadecimal."""
    bare = {name: value for name, value in content.items() if name != "sha256"}
    # Half of a surrogate pair may be escaped in JSON; visible texts have none.
    return hashlib.sha256(canonical_text(bare).encode("utf-8", "surrogatepass")).hexdigest()


def texts_of(content: Any) -> Iterator[str]:
    """Yield every text of a document."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for one in content.values() if isinstance(content, dict) else content:
            yield from texts_of(one)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Readers disagree on which of two values of one name counts.
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object must have every name once")
    return fields


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"numbers must be finite, unlike {text}")


def _refuse_fraction(text: str) -> Any:
    raise ValueError(f"numbers must be integers, unlike one of {len(text)} characters")
