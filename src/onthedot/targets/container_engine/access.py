"""How an engine is reached, and with what it logs in to registries."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping

import msgspec

from onthedot.model.image import ImageName
from onthedot.settings import ContainerSetting, RegistrySetting

__all__ = ["EngineAddress", "registry_login"]

_DOCKER_HUB = "https://index.docker.io/v1/"


class EngineAddress(msgspec.Struct, frozen=True):
    """`socket`: unix:///path, or tcp://host:port, with TLS if there are files (PEM) for it."""

    socket: str
    ca: str | None = None  # who signed the certificate of the engine
    cert: str | None = None  # our own, and its key
    key: str | None = None

    @classmethod
    def of(cls, setting: ContainerSetting) -> EngineAddress:
        return cls(setting.socket, setting.ca, setting.cert, setting.key)

    def context(self) -> ssl.SSLContext | None:
        """Made anew for each connection, which are few: a certificate that was renewed is found. OSError (which
        SSLError is) if a file can't be read."""
        if self.ca is None and self.cert is None:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise OSError(f"{self.ca}: {error.strerror or error}") from error
        if self.cert is not None:
            try:
                context.load_cert_chain(self.cert, self.key)
            except OSError as error:
                raise OSError(f"{self.cert}, {self.key}: {error.strerror or error}") from error
        return context


def registry_login(reference: str, registries: Mapping[str, RegistrySetting]) -> str | None:
    """What an engine is told to log in with, to the registry of this image and no other. None: nothing.
    SettingsError: the password is not there."""
    registry = ImageName.parse(reference).registry
    setting = registries.get(registry)
    if setting is None:
        return None
    login = {
        "username": setting.username,
        "password": setting.password(registry),
        "serveraddress": _DOCKER_HUB if registry == "docker.io" else registry,
    }
    return base64.urlsafe_b64encode(msgspec.json.encode(login)).decode()
