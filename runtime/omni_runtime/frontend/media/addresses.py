"""Pure: which addresses belong to the public internet, and which to somebody's own network or machine."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
"""Its last 32 bits are the IPv4 address that a gateway goes on to."""


def is_public(text: str) -> bool:
    """False for what is no address at all, too."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(one.is_global and not one.is_multicast for one in (address, *_within(address)))


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _within(address: Address) -> list[Address]:
    """The IPv4 addresses that an IPv6 one stands for."""
    if isinstance(address, IPv4Address):
        return []
    found: list[Address] = [one for one in (address.ipv4_mapped, address.sixtofour) if one is not None]
    if address.teredo is not None:
        found += address.teredo
    if address in NAT64:
        found.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return found
