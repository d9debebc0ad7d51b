"""Check of the settings of TCP: buffers, backlog, congestion control."""

from __future__ import annotations

from collections.abc import Mapping

from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import uniform_settings
from fablint.preflight.judges.uniform import Settings, SettingsComparison
from fablint.text.sanitise import shortened

_AT = "/proc/sys/net"
_FILES = {
    **{name: f"{_AT}/core/{name}" for name in ("rmem_max", "wmem_max", "netdev_max_backlog")},
    **{name: f"{_AT}/ipv4/{name}" for name in ("tcp_rmem", "tcp_wmem", "tcp_congestion_control")},
}


def _settings(host: Host) -> Mapping[str, Settings]:
    texts = {name: host.read(path) for name, path in _FILES.items()}
    settings = {name: shortened(" ".join(text.split())) for name, text in texts.items() if text}
    return {"": settings} if settings else {}


TCP_SETTINGS = Check(
    id="net.tcp",
    what="buffers of TCP, backlog of received packets, congestion control",
    source=f"{_AT}/core/rmem_max, wmem_max, netdev_max_backlog; {_AT}/ipv4/tcp_rmem, tcp_wmem, tcp_congestion_control",
    remedy="use the same /etc/sysctl.d on all hosts; fast NICs need buffers of some MB",
    judge=uniform_settings(SettingsComparison(_settings, "the kernel does not show them, as in a container")),
)
