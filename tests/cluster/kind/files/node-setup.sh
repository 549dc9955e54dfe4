#!/bin/bash
# Runs once while the node image is built: what kind's own Dockerfile does, and three differences for hosts like ours.
set -eu
chmod 755 /usr/local/bin/* /usr/local/sbin/* /usr/bin/kube* /opt/cni/bin/* /kind /kind/bin /kind/bin/*

# no unit that has no business in a container
units=/lib/systemd/system
rm -f $units/sysinit.target.wants/systemd-tmpfiles-setup.service $units/multi-user.target.wants/* \
  $units/local-fs.target.wants/* $units/basic.target.wants/* $units/sockets.target.wants/*udev* \
  $units/sockets.target.wants/*initctl* /etc/systemd/system/*.wants/*
echo ReadKMsg=no >>/etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service
mkdir -p /etc/kubernetes/manifests /etc/kubernetes/kubelet.conf.d
ctr oci spec | jq '.hooks.createContainer += [{path: "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
  >/etc/containerd/cri-base.json

# 1. a host without CAP_SYS_RESOURCE cannot lower oom_score_adj
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
# 2. the kubelet refuses cgroup v1 unless told otherwise; a drop-in, so that no kubeadm patch is needed
cat >/etc/kubernetes/kubelet.conf.d/10-cgroup-v1.conf <<'EOF'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
EOF
sed -i 's#^KUBELET_EXTRA_ARGS=.*#& --config-dir=/etc/kubernetes/kubelet.conf.d#' /etc/default/kubelet
# 3. the host may have forwarding off
echo 'net.ipv4.ip_forward=1' >/etc/sysctl.d/99-forward.conf
