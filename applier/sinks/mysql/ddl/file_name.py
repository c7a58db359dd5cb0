"""Names of schemas and tables as InnoDB keeps them: ``my-table`` is ``my@002dtable``.

MariaDB converts names itself (``CONVERT(… USING filename)``); MySQL knows that character set too, but lets no statement use it. So the
conversion is done here, for both. Source: "Mapping of Identifiers to File Names" in MySQL's manual. Pure.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

_PLAIN: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_DIGITS, _EARLY, _LATE = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ghijklmnopqrstuvwxyz"
# Letters of small alphabets are "@" and two characters instead of four hexadecimal digits, in the order of ``_codes``. Here are the
# letters in that order, hexadecimal: 48b+27 is every second from U+048B on, 27 of them; 1f00*8 is each; -4 leaves four codes out.
_SMALL: Final = (
    "e0*23 df f8*8 101+28 138+9 149+24 17a+3 17f -21 390 -1 3ac*35 -1 3d0*2 -3 3d5*3 3d9+12 3f0*4 3f5*2 3f8 3fb*2 -15 "
    "430*48 461+17 -1 48b+27 -1 4c2+7 -1 4d1+21 -6 501+8 -4 561*37 -2 2170*16 -4 180 183+2 188 18c*2 192 195 199*3 19e "
    "1a1+3 1a8+2 1ab+2 1b0 1b4+2 1b9*3 -1 1be 1bd 1c6 1c9 1cc+9 1dd+10 1f0 1f3+2 1f9+30 234*6 -1 23c -1 23f*2 -14 250*96 "
    "-17 1e01+75 1e96*6 -4 1ea1+45 -10 1f00*8 1f10*6 -4 1f20*8 1f30*8 1f40*6 -4 1f50*8 -4 1f60*8 1f70*14 -2 1f80*8 1f90*8 "
    "1fa0*8 1fb0*5 -1 1fb6*2 1fc2*3 -1 1fc6*2 1fd0*4 -2 1fd6*2 -1 1fe0*8 -2 1ff2*2 -2 1ff6*2 -17 ff41*26 24d0*26"
)
_CAPITAL: Final = (
    "c0*23 -1 d8*7 178 100+24 -1 132+3 -1 139+8 -1 14a+23 179+3 -24 386+2 389*2 -1 391 -1 393*5 -1 399 -1 39b*5 -1 3a1 -2 "
    "3a4*2 -1 3a7*5 38c+2 38f -1 392 398 3d2*3 3a6 3a0 -2 3da+11 39a -1 3a3 -6 3fd*3 -12 410*32 400*16 460+17 -1 48a+28 "
    "4c1+7 -1 4d0+21 -6 500+8 -4 531*37 -2 2160*16 -5 182+2 187 18b -1 191 1f6 198 23d -1 220 1a0+3 1a7 -2 1ac 1af 1b3+2 "
    "1b8 -4 1bc 1c4 1c7 1ca 1cd+8 18e 1de+9 -1 1f1 1f4 1f8+20 -1 222+9 -6 23a*2 23e -19 181 186 -1 189*2 -1 18f -1 190 -4 "
    "193 -2 194 -4 197 196 -5 19c -2 19d -2 19f -10 1a6 -2 1a9 -4 1ae -1 1b1*2 -6 1b7 -1 241 -44 1e00+48 -1 1e62+26 -5 1e60 "
    "-4 1ea0+45 -10 1f08*8 1f18*6 -4 1f28*8 1f38*8 1f48*6 -5 1f59 -1 1f5b -1 1f5d -1 1f5f -4 1f68*8 1fba*2 1fc8*4 1fda*2 "
    "1ff8*2 1fea*2 1ffa*2 -2 1f88*8 1f98*8 1fa8*8 1fb8*2 -1 1fbc -5 1fcc -4 1fd8*2 -7 1fe8*2 -3 1fec -5 1ffc -21 ff21*26 "
    "24b6*26"
)
_DEVICES: Final = frozenset(["con", "prn", "aux", "nul", *(f"{port}{number}" for port, number in product(("com", "lpt"), "123456789"))])
"""Names that Windows keeps for devices; the servers set them apart everywhere."""


def file_name(name: str) -> str:
    """Convert the name of a schema, a table or a partition."""
    letters = _letters()
    converted = "".join(char if char in _PLAIN else letters.get(char) or f"@{ord(char):04x}" for char in name)
    return f"{converted}@@@" if converted.casefold() in _DEVICES else converted


@cache
def _letters() -> dict[str, str]:
    small = dict(zip(_spelled(_SMALL), _codes(_EARLY, _LATE), strict=True))
    capital = dict(zip(_spelled(_CAPITAL), _codes(_EARLY.upper(), _LATE.upper()), strict=True))
    return {char: f"@{code}" for char, code in (small | capital).items() if char}


def _codes(early: str, late: str) -> Iterator[str]:
    yield from (first + second for first in _DIGITS for second in late)
    yield from (first + second for second in _DIGITS + _EARLY for first in late)
    yield from (f"{first}@" for first in early)
    yield from (f"@{second}" for second in early)


def _spelled(runs: str) -> Iterator[str]:
    """Yield the letters of the runs; '' for a code that no letter has."""
    for run in runs.split():
        if run[0] == "-":
            yield from [""] * int(run[1:])
            continue
        step = 2 if "+" in run else 1
        first, _, count = run.replace("+", "*").partition("*")
        yield from (chr(int(first, 16) + step * index) for index in range(int(count or "1")))
