"""Kubeconfig files that say how to reach an API server, and as whom."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.certificates import Pair


@dataclass(frozen=True)
class Token:
    """A bearer token, as a service account has one."""

    value: str


def write_kubeconfig(path: Path, server: str, authority: Path, credentials: Pair | Token) -> Path:
    """Write the file (JSON, which is YAML too) readable by its owner only, and return its path."""
    user = (
        {"token": credentials.value}
        if isinstance(credentials, Token)
        else {"client-certificate": str(credentials.certificate), "client-key": str(credentials.key)}
    )
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "omni", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "omni", "user": user}],
        "contexts": [{"name": "omni", "context": {"cluster": "omni", "user": "omni"}}],
        "current-context": "omni",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path
