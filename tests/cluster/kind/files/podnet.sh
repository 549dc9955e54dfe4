#!/bin/bash
# The pod network of one node, in place of kindnetd: a CNI configuration for the node's pod range, a route to every
# other node's range, and masquerading for what leaves the pods. Runs in the DaemonSet podnet (podnet.yaml), where kind
# sets CONTROL_PLANE_ENDPOINT.
set -u
account=/var/run/secrets/kubernetes.io/serviceaccount
config=/etc/cni/net.d/10-podnet.conflist

api() {
  curl -sS -m 5 -f --cacert $account/ca.crt -H "Authorization: Bearer $(cat $account/token)" \
    "https://$CONTROL_PLANE_ENDPOINT/$1"
}

masquerade() {
  iptables -w -t nat -N PODNET 2>/dev/null || iptables -w -t nat -F PODNET
  iptables -w -t nat -A PODNET -d "$POD_SUBNET" -j RETURN
  iptables -w -t nat -A PODNET -s "$POD_SUBNET" -m addrtype ! --dst-type LOCAL -j MASQUERADE
  iptables -w -t nat -C POSTROUTING -j PODNET 2>/dev/null || iptables -w -t nat -A POSTROUTING -j PODNET
}

# Until kube-proxy has its rules, a packet for a service address must be refused, not lost: a lost first SYN leaves a
# conntrack entry without translation, and the caller (CoreDNS) then hangs for its whole 30 s dial time-out.
refuse_untranslated() {
  local services chain rule
  services=$(api apis/networking.k8s.io/v1/servicecidrs/kubernetes | jq -r '.spec.cidrs[0]') || return 1
  rule="-d $services -j REJECT --reject-with icmp-host-unreachable"
  for chain in FORWARD OUTPUT; do
    # shellcheck disable=SC2086  # the rule is several words
    iptables -w -C $chain $rule 2>/dev/null || iptables -w -A $chain $rule
  done
}

write_config() {
  jq -n --arg range "$1" '{cniVersion: "0.4.0", name: "podnet", plugins: [
    {type: "ptp", ipMasq: false, mtu: 1500, ipam: {type: "host-local", dataDir: "/run/cni-ipam-state",
      ranges: [[{subnet: $range}]], routes: [{dst: "0.0.0.0/0"}]}},
    {type: "portmap", capabilities: {portMappings: true}}]}' >$config.unfinished && mv $config.unfinished $config
}

route_to_others() {
  jq -r '.items[] | select(.metadata.name != env.NODE_NAME)
    | [.spec.podCIDR, ([.status.addresses[]? | select(.type == "InternalIP").address][0])]
    | select(all(.[]; . != null)) | @tsv' <<<"$1" |
    while read -r range gateway; do ip route replace "$range" via "$gateway"; done
}

masquerade
written=
while :; do
  if nodes=$(api api/v1/nodes); then
    range=$(jq -r '.items[] | select(.metadata.name == env.NODE_NAME) | .spec.podCIDR // empty' <<<"$nodes")
    if [ -n "$range" ] && [ "$range" != "$written" ] && refuse_untranslated; then
      write_config "$range" && written=$range && echo "pod range of this node: $range"
    fi
    route_to_others "$nodes"
  fi
  [ -n "$written" ] && sleep 3 || sleep 0.5
done
