"""Values on their way from a program's process: JSON with a handful of tags, checked when it arrives.

What arrives is data from a stranger. Nothing but JSON is read, so that decoding it cannot run code, and every
size is checked before it is believed.
"""

from __future__ import annotations

import json
import marshal
from _blake2 import blake2b  # `hashlib` would load all of OpenSSL into workers, which are to be small
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from types import NoneType
from typing import Any

MAX_INTEGER_BITS = 14_000  # below CPython's limit of 4,300 digits, so that every integer has a text
MAX_VALUE_TEXT = 1 << 15  # longer values travel as the digest of their text
MAX_DEPTH = 100
MAX_WORK = 50_000  # elements visited, roughly, before a value counts as opaque
MAX_DECODING = 16_000  # units of work for all the states of a program
MAX_DECIMAL_DIGITS = 4_000
MAX_NAME = 80  # characters of a type's name
TOO_LARGE = "the states are too large to be kept"

_INTEGER_BOUND = 1 << MAX_INTEGER_BITS
_NUMBERS = frozenset({int, float, bool, NoneType})
_PLAIN_BOUND = 1 << 62  # smaller integers, and texts of fewer characters than the next, are written at once
_PLAIN_TEXT = 1 << 10
_LONG = MAX_VALUE_TEXT // 2  # a list of more numbers has too long a text: it need not be written
_TOO_LONG = MAX_WORK << 6
text_to_json: Callable[[str], str] = json.encoder.encode_basestring_ascii
to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that cannot be compared by content (an instance, an iterator): only its type is known."""

    type_name: str

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


class WireError(Exception):
    """Something that no honest sender would have sent."""


class IntegerTooLarge(Exception):
    """A value holds an integer of more than MAX_INTEGER_BITS bits."""


class TooMuchWork(Exception):
    """Values that are sound but would take this process too long to compare."""


class _TooComplex(Exception):
    """A value is cyclic, too deep or too large to be compared by content."""


def digest(content: bytes) -> str:
    """A short text that stands for long content."""
    found: str = blake2b(content, digest_size=16).hexdigest()
    return found


def printable(text: str) -> str:
    r"""The text with what a terminal or a file would act on written out: control characters, lone surrogates.

    >>> printable("a\x1b[2Jb"), printable("né\ud800")
    ('a\\x1b[2Jb', 'né\\ud800')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def encode_value(value: Any) -> str:
    """The JSON text of a value; it calls no code of the value's own class.

    >>> encode_value((1, 2.5, {"a"})), encode_value([float("nan"), None]), encode_value(iter([]))
    ('{"t":[1,2.5,{"s":["a"]}]}', '[NaN,null]', '{"o":"list_iterator"}')
    """
    kind = type(value)
    if kind is int and -_PLAIN_BOUND < value < _PLAIN_BOUND:
        return repr(value)
    if kind is str and len(value) < _PLAIN_TEXT:
        return text_to_json(value)
    if kind is list and _LONG < len(value) < _TOO_LONG and set(map(type, value)) <= _NUMBERS:
        _Encoder().encode_items(value, 0)  # checks them
        return to_json(_digest(kind, marshal.dumps(value, 2)))
    try:
        text = to_json(_Encoder().encode(value, 0))
    except _TooComplex:
        return to_json({"o": kind.__name__[:MAX_NAME]})
    return text if len(text) <= MAX_VALUE_TEXT else to_json(_digest(kind, text.encode()))


def _digest(kind: type, content: bytes) -> dict[str, str]:
    """What stands for a long value: equal for equal contents."""
    return {"o": f"{kind.__name__[:MAX_NAME]}#{digest(content)}"}


class _Encoder:
    """Turns one value into what JSON can say, within a budget of work."""

    def __init__(self) -> None:
        self.work = 0

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self.spend(1)
        if kind is int:
            return _checked_integer(value)
        if kind in _NUMBERS:
            return value
        if kind is str:
            self.spend(len(value) >> 9)
            short = len(value) <= MAX_VALUE_TEXT
            return value if short else _digest(kind, value.encode("utf-8", "surrogatepass"))
        if depth > MAX_DEPTH:
            raise _TooComplex
        return self.encode_other(value, kind, depth)

    def encode_other(self, value: Any, kind: type, depth: int) -> Any:
        if kind is list or kind is deque:
            return self.encode_items(value, depth)
        if kind is tuple or _is_named_tuple(kind):
            return {"t": self.encode_items(tuple.__getitem__(value, slice(None)), depth)}
        if kind is set or kind is frozenset:
            return {"s" if kind is set else "f": self.encode_unordered(value, depth)}
        if kind in (dict, Counter, defaultdict, OrderedDict):
            pairs = dict.items(value)
            return {"d": [[self.encode(key, depth + 1), self.encode(item, depth + 1)] for key, item in pairs]}
        if kind is bytes or kind is bytearray:
            self.spend(len(value) >> 9)
            return {"b": value.hex()} if len(value) <= MAX_VALUE_TEXT else _digest(bytes, value)
        return _encode_scalar(value, kind)

    def encode_items(self, values: Any, depth: int) -> list[Any]:
        # Lists of plain numbers are the usual ones: their largest and smallest are checked, not each.
        kinds = set(map(type, values))
        if not kinds <= _NUMBERS:
            return [self.encode(value, depth + 1) for value in values]
        self.spend(len(values) >> 6)
        if int in kinds:
            integers = values if kinds == {int} else [value for value in values if type(value) is int]
            _checked_integer(max(integers))
            _checked_integer(min(integers))
        return list(values)

    def encode_unordered(self, values: Any, depth: int) -> list[Any]:
        # In order, because that of a set hangs on the hash seed.
        encoded = self.encode_items(values, depth)
        kinds = set(map(type, encoded))  # a long text is a digest by now
        return sorted(encoded) if kinds in ({int}, {str}) else sorted(encoded, key=to_json)

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise _TooComplex


def _is_named_tuple(kind: type) -> bool:
    """Not one with a hash of its own: it could be a key here while a tuple like it could not be one."""
    if not (issubclass(kind, tuple) and "_fields" in kind.__dict__):
        return False
    # Looked up without asking it: a program may bind any object, with methods of its own, to `__hash__`.
    owner = next(base for base in kind.__mro__ if "__hash__" in base.__dict__)
    return owner is tuple or owner.__dict__["__hash__"] is None


def _checked_integer(value: int) -> int:
    if -_INTEGER_BOUND < value < _INTEGER_BOUND:
        return value
    raise IntegerTooLarge


def _encode_scalar(value: Any, kind: type) -> Any:
    if kind is complex:
        return {"c": [value.real, value.imag]}
    if kind is Fraction and type(value._numerator) is type(value._denominator) is int:
        return {"q": [_checked_integer(value._numerator), _checked_integer(value._denominator)]}
    if kind is Decimal:
        return {"m": str(value)} if _is_moderate(value) else {"o": f"Decimal {value:.30e}"}
    if kind is range:
        shown = repr(range(*map(_checked_integer, (value.start, value.stop, value.step))))
        return {"o": shown} if len(shown) < 200 else {"o": "range"}
    return {"o": kind.__name__[:MAX_NAME]}


def _is_moderate(value: Decimal) -> bool:
    """Whether a decimal is small enough, and fine enough, to be written out as a fraction."""
    return not value.is_finite() or _written_digits(value) <= MAX_DECIMAL_DIGITS


def _written_digits(value: Decimal) -> int:
    _, digits, exponent = value.as_tuple()
    return len(digits) + (abs(exponent) if isinstance(exponent, int) else 0)


def decode_line(line: bytes) -> Any:
    """One line of JSON, or a WireError."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {type(error).__name__}") from None


class Decoder:
    """Rebuilds values within a budget of work, of about a microsecond a unit, to compare them included."""

    def __init__(self, work: int = MAX_DECODING) -> None:
        self.work = work

    def decode(self, encoded: Any, depth: int = 0) -> Any:
        kind = type(encoded)
        self.spend(1)
        if kind is int:
            return _believed_integer(encoded)
        if kind in _NUMBERS:
            return encoded
        if kind is str:
            self.spend(len(encoded) >> 9)
            return encoded
        if depth > MAX_DEPTH + 1:
            raise WireError("a value nested too deep")
        if kind is list:
            return self.items(encoded, depth)
        if kind is not dict or len(encoded) != 1:
            raise WireError("a value without a tag")
        ((tag, content),) = encoded.items()
        if tag not in _DECODERS:
            raise WireError(f"an unknown tag {tag[:20]!r}")
        try:
            return _DECODERS[tag](self, content, depth + 1)
        except (TypeError, ValueError, ArithmeticError, InvalidOperation) as error:
            raise WireError(f"a bad {tag!r}: {type(error).__name__}") from None

    def items(self, content: Any, depth: int) -> list[Any]:
        if type(content) is not list:
            raise TypeError
        kinds = set(map(type, content))
        if not kinds <= _NUMBERS:
            return [self.decode(item, depth + 1) for item in content]
        self.spend(len(content) >> (1 if float in kinds else 3))  # floats take longer to spell
        if int in kinds:
            integers = [item for item in content if type(item) is int]
            _believed_integer(max(integers))
            _believed_integer(min(integers))
        return content

    def table(self, content: Any, depth: int) -> dict[Any, Any]:
        self.spend(2 * len(content))
        pairs = [self.items(pair, depth) for pair in content]
        return dict(zip(self.keys([key for key, _ in pairs]), [value for _, value in pairs], strict=True))

    def keys(self, found: list[Any]) -> list[Any]:
        """What is to be hashed; each that has the hash of another is compared with all of that hash."""
        self.spend((len(found) - len(set(map(hash, found)))) ** 2 >> 3)
        return found

    def fraction(self, content: Any) -> Fraction:
        self.spend(8)
        numerator, denominator = content
        if type(numerator) is not int or type(denominator) is not int:
            raise TypeError
        return Fraction(_believed_integer(numerator), _believed_integer(denominator))

    def decimal(self, content: Any) -> Decimal:
        value = Decimal(_text(content))
        if not _is_moderate(value):
            raise ValueError
        self.spend(8 + (_written_digits(value) ** 2 >> 16))
        return value

    def spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise TooMuchWork


def _believed_integer(value: int) -> int:
    if not -_INTEGER_BOUND < value < _INTEGER_BOUND:
        raise WireError("an integer over the limit")
    return value


def _complex(content: Any) -> complex:
    real, imaginary = content
    return complex(float(real), float(imaginary))


def _text(content: Any) -> str:
    if type(content) is not str:
        raise TypeError
    return content


_DECODERS: dict[str, Callable[[Decoder, Any, int], Any]] = {
    "t": lambda decoder, content, depth: tuple(decoder.items(content, depth)),
    "s": lambda decoder, content, depth: set(decoder.keys(decoder.items(content, depth))),
    "f": lambda decoder, content, depth: frozenset(decoder.keys(decoder.items(content, depth))),
    "d": lambda decoder, content, depth: decoder.table(content, depth),
    "b": lambda decoder, content, depth: bytes.fromhex(_text(content)),
    "c": lambda decoder, content, depth: _complex(content),
    "q": lambda decoder, content, depth: decoder.fraction(content),
    "m": lambda decoder, content, depth: decoder.decimal(content),
    "o": lambda decoder, content, depth: Opaque(printable(_text(content))),
}
