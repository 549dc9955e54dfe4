"""The state folder of a control plane: certificates, kubeconfigs, audit policy, and where each file of it is."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tests.cluster.audit import write_policy
from tests.cluster.certificates import Authority
from tests.cluster.control_flags import SERVER_HOSTS, Files, Ports
from tests.cluster.kubeconfig import write_kubeconfig

CERTIFICATE_LIFE_S = 300 * 86400  # openssl makes them for 365 days
ADMIN = "admin"
USERS = {
    ADMIN: ("admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
}


def prepare(state: Path, ports: Ports) -> Files:
    """Fill the folder unless it is whole, recent and made for these ports; a folder that is not is made anew."""
    files = files_of(state)
    mark = state / "prepared.json"
    if not _is_usable(mark, ports):
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir(parents=True, mode=0o700)
        _make(state, ports, files)
        mark.write_text(json.dumps({"port_base": ports.base}))
    return files


def files_of(state: Path) -> Files:
    pki = state / "pki"
    authority = Authority(pki)
    return Files(
        authority=authority.pair,
        server=authority.pair_of("server"),
        etcd_client=authority.pair_of("etcd-client"),
        tokens=authority.pair_of("service-accounts"),
        etcd_data=state / "etcd",
        audit_policy=state / "audit-policy.json",
        audit_log=state / "audit.log",
        kubeconfigs=state,
    )


def kubeconfig(state: Path, name: str) -> Path:
    return state / f"{name}.kubeconfig"


def _is_usable(mark: Path, ports: Ports) -> bool:
    try:
        made_for = json.loads(mark.read_text())
        return made_for == {"port_base": ports.base} and time.time() - mark.stat().st_mtime < CERTIFICATE_LIFE_S
    except (FileNotFoundError, ValueError):
        return False


def _make(state: Path, ports: Ports, files: Files) -> None:
    authority = Authority(state / "pki")
    authority.create()
    authority.server("server", SERVER_HOSTS)
    authority.client("etcd-client", "kube-apiserver")
    authority.signing_key("service-accounts")
    write_policy(files.audit_policy)
    for name, (user, groups) in USERS.items():
        pair = authority.client(name, user, groups)
        write_kubeconfig(kubeconfig(state, name), f"https://127.0.0.1:{ports.api}", authority.certificate, pair)
