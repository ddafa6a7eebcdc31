# What tests in the guest build on. $PROGRAM is the test program, $PIN the place of the BPF program it pins.
# Namespaces: `left` and `right` joined by veth devices in both, `inner` behind `left`.

echo "release $(uname -r)"

ip netns add left
ip netns add right
ip link add name cable netns left type veth peer name cable netns right
for side in left right; do
    ip -n $side link set lo up
    ip -n $side link set cable up
done
ip -n left addr add 192.0.2.1/24 dev cable
ip -n right addr add 192.0.2.2/24 dev cable
check veth pings left 192.0.2.2

# WireGuard of the kernel
check wireguard_device ip link add wgtest type wireguard
cd /run
for side in left right; do
    wg genkey >$side.key
    wg pubkey <$side.key >$side.pub
    ip -n $side link add wg0 type wireguard
    nsenter --net=/run/netns/$side wg set wg0 listen-port 51820 private-key $side.key
done
nsenter --net=/run/netns/left wg set wg0 peer "$(cat right.pub)" allowed-ips 10.9.0.2/32 endpoint 192.0.2.2:51820
nsenter --net=/run/netns/right wg set wg0 peer "$(cat left.pub)" allowed-ips 10.9.0.1/32
ip -n left addr add 10.9.0.1/24 dev wg0
ip -n right addr add 10.9.0.2/24 dev wg0
ip -n left link set wg0 up
ip -n right link set wg0 up
check wireguard_ping pings left 10.9.0.2
shook_hands() {
    handshake=$(nsenter --net=/run/netns/right wg show wg0 latest-handshakes | cut -f 2)
    [ "$handshake" -gt 0 ]
}
check wireguard_handshake shook_hands

# VLANs over the same cable: one number on both sides, and one on either side only
for side in left right; do
    ip -n $side link add link cable name vlan10 type vlan id 10
    ip -n $side link set vlan10 up
done
ip -n left addr add 10.10.0.1/24 dev vlan10
ip -n right addr add 10.10.0.2/24 dev vlan10
check vlan_ping pings left 10.10.0.2
ip -n left link add link cable name vlan20 type vlan id 20
ip -n right link add link cable name vlan30 type vlan id 30
ip -n left link set vlan20 up
ip -n right link set vlan30 up
ip -n left addr add 10.20.0.1/24 dev vlan20
ip -n right addr add 10.20.0.2/24 dev vlan30
check vlan_numbers_keep_apart silent left 10.20.0.2

# dummy
ip -n left link add dummy0 type dummy
ip -n left addr add 10.30.0.1/24 dev dummy0
ip -n left link set dummy0 up
dummy_is_there() {
    ip -n left -details link show dev dummy0 | grep -q -w dummy
}
check dummy_device dummy_is_there
check dummy_ping pings left 10.30.0.1

# masquerade: `right` has no route back to `inner`, so only masqueraded packets are answered
ip netns add inner
ip link add name lan netns left type veth peer name uplink netns inner
ip -n left addr add 10.40.0.1/24 dev lan
ip -n left link set lan up
ip -n inner addr add 10.40.0.2/24 dev uplink
ip -n inner link set uplink up
ip -n inner route add default via 10.40.0.1
nsenter --net=/run/netns/left sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
check unmasqueraded_is_unanswered silent inner 192.0.2.2
check masquerade_rules nsenter --net=/run/netns/left nft -f - <<'RULES'
table ip nat {
    chain out {
        type nat hook postrouting priority srcnat; policy accept;
        oifname "cable" ip saddr 10.40.0.0/24 masquerade
    }
}
RULES
check masqueraded_is_answered pings inner 192.0.2.2

# a Rust program of the host, linked dynamically; BPF through bpffs and clsact
is_dynamic() {
    ldd "$PROGRAM" | grep -q 'libc.so.6 =>'
}
check program_is_dynamic is_dynamic
check bpffs mountpoint /sys/fs/bpf
check program_runs "$PROGRAM" --ignored --exact vm::guest::a_program_that_drops_is_loaded_and_pinned
check program_pinned test -e "$PIN"
check clsact ip netns exec left tc qdisc add dev cable clsact
check unclassified_passes pings left 192.0.2.2
check bpf_filter nsenter --net=/run/netns/left tc filter add dev cable egress bpf direct-action object-pinned "$PIN"
check classified_is_dropped silent left 192.0.2.2
check bpf_filter_removal nsenter --net=/run/netns/left tc filter del dev cable egress
check declassified_passes pings left 192.0.2.2
exit 0
