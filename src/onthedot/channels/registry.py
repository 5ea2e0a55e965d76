"""The channels of a node, by name."""

from __future__ import annotations

from collections.abc import Mapping

from onthedot.channels.by_apprise import INSTALL, AppriseChannel, is_installed
from onthedot.channels.channel import Channel
from onthedot.channels.command import CommandChannel
from onthedot.errors import SettingsError
from onthedot.settings import ChannelSetting, Settings

__all__ = ["build_channels", "check_channels"]


def build_channels(settings: Mapping[str, ChannelSetting]) -> dict[str, Channel]:
    return {name: _channel(setting) for name, setting in settings.items()}


def _channel(setting: ChannelSetting) -> Channel:
    if setting.command:
        return CommandChannel(setting.command)
    url = setting.address()
    if not url.startswith(("http://", "https://")):
        return AppriseChannel(url)
    from onthedot.channels.webhook import WebhookChannel  # its HTTP client is a sixth of the time that a node starts in

    return WebhookChannel(url)


def check_channels(settings: Settings) -> None:
    """SettingsError if a channel can't be used on this node."""
    for name, channel in build_channels(settings.channels).items():
        if isinstance(channel, AppriseChannel) and not is_installed():
            raise SettingsError(f"channels.{name}: URLs other than http:// and https:// require apprise: {INSTALL}")
