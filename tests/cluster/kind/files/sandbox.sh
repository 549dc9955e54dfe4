#!/bin/sh
# The first process of the private namespaces: everything that dockerd and its containers make (bridges, rules,
# mounts, sockets, processes) lives in here and is gone when this process is.
# Arguments: dockerd and its options.
set -eu
mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
exec "$@"
