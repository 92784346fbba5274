"""Reading a request's own fields. Pure; used by the session layer's operations."""

from typing import Any, TypeVar

import msgspec

from bridge.errors import invalid_request
from bridge.wire import codec

T = TypeVar("T", bound=msgspec.Struct)


def fields_of(request: dict[str, Any], kind: type[T]) -> T:
    """The fields of a request as `kind`; raises BridgeError(invalid_request) naming the place."""
    try:
        return codec.convert(request, kind)
    except codec.JSONError as error:
        raise invalid_request(f"{request['operation']}: {error}") from None
