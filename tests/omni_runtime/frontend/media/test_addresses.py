"""Which addresses are the public internet's. A fetched link reaches those and nothing of ours."""

import pytest

from omni_runtime.frontend.media.addresses import is_address, is_public


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.case("runtime:Q2")
@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.2.1"),
        *("169.254.169.254", "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "2002:7f00:1::", "2002:a00:1::1"),
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)
def test_addresses_of_machines_and_private_networks_are_not_even_in_disguise(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "0x7f000001", "2130706433"])
def test_what_is_no_address_is_neither(text: str) -> None:
    assert not is_public(text) and not is_address(text)
