"""What AWS says when it does not do what it was asked for, and whether to ask again."""

from __future__ import annotations

__all__ = ["AwsFailed"]

_LOGIN = (
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "IncompleteSignature",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "AuthFailure",
)
"""It does not know who we are. The job is not to blame, and whoever changes keys has to change them everywhere."""
_LATER = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "ResourceConflict", "NotReady", "SlowDown")
_DENIED = ("AccessDenied", "AccessDeniedException")


class AwsFailed(Exception):
    """`code`: AWS's own word, empty if it was not reached. `status`: of HTTP. `was_sent`: it may have it."""

    def __init__(
        self,
        message: str,
        code: str = "",
        status: int | None = None,
        after_ms: int | None = None,
        *,
        was_sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.code, self.status, self.after_ms, self.was_sent = code, status, after_ms, was_sent

    @property
    def is_login(self) -> bool:
        return self.code in _LOGIN

    @property
    def is_denied(self) -> bool:
        """We are known, and may not."""
        return self.code in _DENIED

    @property
    def answered(self) -> bool:
        return bool(self.code)

    @property
    def retryable(self) -> bool:
        if not self.code or self.is_login or any(word in self.code for word in _LATER):
            return True
        return self.status is None or self.status in (408, 429) or self.status >= 500
