"""A certificate authority and the certificates that it signs, made by the openssl program (P-256, one year)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.commands import run

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
DAYS = "365"


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A folder with `ca.crt`, `ca.key` and whatever it has signed."""

    folder: Path

    @property
    def pair(self) -> Pair:
        return self.pair_of("ca")

    @property
    def certificate(self) -> Path:
        return self.pair.certificate

    def create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        pair = self.pair
        run(
            [
                *("openssl", "req", "-x509", *KEY, "-days", DAYS, "-subj", "/CN=omni-test-ca"),
                *("-keyout", str(pair.key), "-out", str(pair.certificate)),
            ]
        )

    def server(self, name: str, hosts: Sequence[str], days: str = DAYS) -> Pair:
        """A certificate for a server that clients reach by these DNS names and IP addresses."""
        names = ",".join(f"IP:{host}" if _is_address(host) else f"DNS:{host}" for host in hosts)
        usages = ["extendedKeyUsage=serverAuth,clientAuth"]
        return self._sign(name, f"/CN={name}", [f"subjectAltName={names}", *usages], days)

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """A certificate that Kubernetes reads as this user in these groups."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._sign(name, subject, ["extendedKeyUsage=clientAuth"])

    def signing_key(self, name: str) -> Pair:
        """A key for service account tokens; its `certificate` is the bare public key."""
        pair = self.pair_of(name)
        run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", pair.key])
        run(["openssl", "ec", "-in", pair.key, "-pubout", "-out", pair.certificate])
        return pair

    def _sign(self, name: str, subject: str, extensions: Sequence[str], days: str = DAYS) -> Pair:
        pair = self.pair_of(name)
        request, wanted = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        wanted.write_text("\n".join(extensions))
        run(["openssl", "req", "-new", *KEY, "-subj", subject, "-keyout", pair.key, "-out", request])
        run(
            [
                *("openssl", "x509", "-req", "-in", str(request), "-days", days, "-extfile", str(wanted)),
                *("-CA", str(self.pair.certificate), "-CAkey", str(self.pair.key), "-CAcreateserial"),
                *("-out", str(pair.certificate)),
            ]
        )
        return pair

    def pair_of(self, name: str) -> Pair:
        """Where the certificate of this name is, made or not."""
        return Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")


def _is_address(host: str) -> bool:
    return host.replace(".", "").isdigit() or ":" in host
