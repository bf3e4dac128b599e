"""The headers of a repository's weights, without its weights: a few kilobytes of each file."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from selfhost.models.headers import LENGTH_BYTES, BadHeaderError, Tensor, length_of, tensors_in
from selfhost.models.tensor_kinds import summed
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.tensors import Tensors

FIRST_BYTES = 32 * 1024
"""Most headers end within; for the others a second request brings the rest."""
AT_ONCE = 8
BUDGET_S = 20.0
"""200 files of a large model at 100 ms a request take 5 s; behind a slow line the file list has to do."""

Piece = Callable[[str, int, int], bytes]
"""(file name, start, length) → bytes."""


def read_all(sizes: Mapping[str, int], piece: Piece) -> Fact[Tensors]:
    """All tensors of the files in `sizes` (name → bytes), summed. Unknown with the reason when one cannot be read."""
    pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="headers")
    try:
        found = pool.map(lambda name: _read(name, sizes[name], piece), sorted(sizes), timeout=BUDGET_S)
        return Known(summed(found), "safetensors headers")
    except BadHeaderError as error:
        return Unknown(str(error))
    except TimeoutError:
        return Unknown(f"the headers of {len(sizes)} files did not come within {BUDGET_S:g} s")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _read(name: str, size: int, piece: Piece) -> tuple[Tensor, ...]:
    try:
        return _checked(name, size, piece)
    except BadHeaderError as error:
        raise BadHeaderError(f"the header of {name} cannot be used: {error}".rstrip(".")) from None


def _checked(name: str, size: int, piece: Piece) -> tuple[Tensor, ...]:
    """The tensors of one file, when header and file list agree about its size."""
    start = piece(name, 0, FIRST_BYTES)
    length = length_of(start)
    whole = LENGTH_BYTES + length
    if whole > size:
        raise BadHeaderError(f"It announces {length:,} bytes of header, and the file has {size:,}.")
    rest = piece(name, len(start), whole - len(start)) if whole > len(start) else b""
    header = (start + rest)[LENGTH_BYTES:whole]
    if len(header) < length:
        raise BadHeaderError(f"Only {len(header):,} of its {length:,} bytes came.")
    tensors = tensors_in(header)
    end = whole + max((tensor.end for tensor in tensors), default=0)
    if end != size:
        raise BadHeaderError(f"By it the file has {end:,} bytes, in the list {size:,}.")
    return tensors
