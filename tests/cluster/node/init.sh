#!/bin/sh
# The first process of a node, in mount, PID and network namespaces of its own: makes the node's file systems, and becomes
# containerd. init.sh FOLDER, which has containerd.toml, var/, and sysctl/ with files such as kernel/panic.
set -eu
folder=$1
mount --bind "$folder/var" /var
mount -t tmpfs -o mode=755 run /run
mount -t bpf bpf /sys/fs/bpf
# Settings of the whole machine that the kubelet would change: it finds the values that it wants.
cd "$folder/sysctl"
find . -type f | while read -r setting; do mount --bind "$setting" "/proc/sys/$setting"; done
cd /
# Volumes with mount propagation need it.
mount --make-rshared /
exec containerd --config "$folder/containerd.toml"
