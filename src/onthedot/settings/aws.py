"""The table [aws]: where the services of AWS are. Who we are there is found in AWS's usual places."""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from onthedot.settings.wrong_value import WrongValue, wrong_field

__all__ = ["AwsSetting", "parse_aws"]

_ACCEPTED = 'a table [aws] with region = "eu-central-1" and optionally endpoint = "https://…", or the same as JSON'
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}", re.ASCII)
_ENDPOINT = re.compile(r"https?://[^\s/?#@]+/?", re.ASCII)
_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


class AwsSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    region: str | None = None  # None: as the environment says
    endpoint: str | None = None  # of all services; None: AWS's own

    @property
    def found_region(self) -> str | None:
        return self.region or next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), None)


def parse_aws(value: Any) -> AwsSetting:
    if isinstance(value, AwsSetting):
        return value
    try:
        found = (
            msgspec.json.decode(value, type=AwsSetting)
            if isinstance(value, str)
            else msgspec.convert(value, AwsSetting)
        )
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(_ACCEPTED, wrong_field(error, value, AwsSetting, "aws")) from None
    for name, text, pattern in (("region", found.region, _REGION), ("endpoint", found.endpoint, _ENDPOINT)):
        if text is not None and pattern.fullmatch(text) is None:
            raise WrongValue(_ACCEPTED, f"aws.{name} is not valid")
    return found
