"""What of a kernel's name tells which algorithm it is, and what only tells its arguments.

A kernel that is compiled anew (another tile, data type, layout, architecture, another number from
a compiler) keeps the words that say what it computes. Two names with the same words are the same
kernel with other arguments; a word of difference (``Add`` and ``Mul``) makes another kernel.
"""

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ARGUMENTS = re.compile(
    r"\d+|[0-9a-f]{8,}|\d*x\d+(x\d+)*|[a-z]?\d+x\d+(x\d+)*"
    # data types, alone or in the names that vendors build of them
    r"|float|double|half|bool|char|short|int|long|unsigned|void|const|bfloat16?|bf16|fp\d+|f\d+"
    r"|tf32|[iu]nt\d+|[iu]\d+|e4m3(fn)?|e5m2|complex|c10|ul|ull|[shdcz]"
    # layouts, architectures
    r"|[nt]{2,3}|nchw|nhwc|ncdhw|ndhwc|nchwkcrs|nhwckrsc|row|col|(aligned?|align)\d+"
    r"|sm\d+|gfx\d+[a-z]?|volta|turing|ampere|hopper|ada|maxwell|pascal|blackwell"
    # the shape of a tile and how it is fed
    r"|mt\d+\w*|mi\d+\w*|ldg\d+|stages|stage\d*|tile\w*|warp\w*|splitk\d*|sliced\d+x?\d*"
)
_COUNTED = re.compile(
    r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\b(?=\w*\d)[0-9a-z]{20,}\b|(?<![A-Za-z0-9:])\d+(?![A-Za-z])"
)
_MULTIPLY = re.compile(r"[shdczi]?\d*(gemm|mma|conv)")


@lru_cache(maxsize=65536)
def words(name: str) -> frozenset[str]:
    """The words of a name that tell what is computed, in lower case."""
    found = set()
    for part in _WORD.findall(_CAMEL.sub(" ", name)):
        lower = part.lower()
        multiply = _MULTIPLY.fullmatch(lower)
        if multiply:
            found.add(multiply.group(1))
        elif not _ARGUMENTS.fullmatch(lower):
            found.add(lower)
    return frozenset(found)


@lru_cache(maxsize=65536)
def numbered(name: str) -> str:
    """A name without the numbers and hashes that a compiler counts up, for operators."""
    return _COUNTED.sub("#", name)
