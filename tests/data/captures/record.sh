#!/bin/sh
# Records the captures of this folder again: traffic of real clients between two network namespaces. Needs root and the
# programs that `cargo xtask setup` installs. Changes nothing of the host.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
client=gwrec$$c
server=gwrec$$s
in_client() { ip netns exec "$client" "$@"; }
in_server() { ip netns exec "$server" "$@"; }
cleanup() {
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  ip netns del "$client" 2>/dev/null || true
  ip netns del "$server" 2>/dev/null || true
  rm -rf "$work"
}
pids=
trap cleanup EXIT
trap 'exit 1' INT TERM
# background NAMESPACE COMMAND: starts a server, which ends with this script.
background() {
  ip netns exec "$@" >"$work/log" 2>&1 &
  pids="$pids $!"
}

ip netns add "$client"
ip netns add "$server"
ip -n "$client" link add eth0 type veth peer name eth0 netns "$server"
for ns in "$client" "$server"; do
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.dad_transmits=0 net.ipv6.conf.default.dad_transmits=0
  ip -n "$ns" link set lo up
  ethtool=$(command -v ethtool || true)
  [ -z "$ethtool" ] || ip netns exec "$ns" ethtool -K eth0 tso off gso off gro off tx off rx off >/dev/null
done
ip -n "$client" link set eth0 address 02:00:00:00:00:01
ip -n "$server" link set eth0 address 02:00:00:00:00:02

# record NAME: begins a capture, from the first packet on.
record() {
  ip netns exec "$client" tcpdump -U -Z root -i "${2:-eth0}" -s 0 -w "$folder/$1.pcap" 2>"$work/tcpdump" &
  recorder=$!
  until grep -q listening "$work/tcpdump"; do kill -0 "$recorder" || exit 1; sleep 0.1; done
}
stop() { sleep 1; kill "$recorder"; wait "$recorder" || true; }
# answers COMMAND: waits until a server answers.
answers() { i=0; until "$@" >/dev/null 2>&1; do i=$((i + 1)); [ $i -lt 50 ] || exit 1; sleep 0.1; done; }

# Links: ARP, neighbour discovery, router solicitation, group membership, fragments.
ip -n "$client" link set eth0 up
record link
ip -n "$server" link set eth0 up
ip -n "$client" addr add 192.0.2.1/24 dev eth0
ip -n "$server" addr add 192.0.2.2/24 dev eth0
ip -n "$client" route add 224.0.0.0/4 dev eth0
ip -n "$client" addr add 2001:db8::1/64 dev eth0 nodad
ip -n "$server" addr add 2001:db8::2/64 dev eth0 nodad
answers in_client ping -q -c 2 -i 0.2 -W 1 192.0.2.2
answers in_client ping -q -c 2 -i 0.2 -W 1 2001:db8::2
in_client ping -q -c 1 -s 3000 192.0.2.2 >/dev/null
in_client ping -q -c 1 -s 3000 2001:db8::2 >/dev/null
in_client ping -q -c 1 -W 1 192.0.2.77 >/dev/null || true
in_client rdisc6 -1 -w 500 eth0 >/dev/null 2>&1 || true
stop

# DNS over UDP and TCP, and a question of multicast DNS.
cat >"$work/zone" <<'Z'
$ORIGIN example.org.
@ 300 IN SOA ns hostmaster 1 3600 600 86400 300
@ IN NS ns
@ IN MX 10 mail
ns IN A 192.0.2.2
www IN A 198.51.100.7
www IN AAAA 2001:db8::7
mail IN CNAME www
@ IN TXT "a text of a zone"
Z
cat >"$work/nsd.conf" <<N
server:
  ip-address: 192.0.2.2
  ip-address: 2001:db8::2
  username: ""
  chroot: ""
  pidfile: "$work/nsd.pid"
  xfrdfile: "$work/xfrd"
  zonelistfile: "$work/zonelist"
  database: ""
remote-control:
  control-enable: no
zone:
  name: example.org
  zonefile: "$work/zone"
N
background "$server" nsd -d -c "$work/nsd.conf"
answers in_client dig +tries=1 +time=1 @192.0.2.2 example.org SOA
record dns
for query in "www.example.org A" "www.example.org AAAA" "mail.example.org A" "example.org MX" "example.org TXT" "no.example.org A"; do
  in_client dig @192.0.2.2 $query >/dev/null
  in_client dig @2001:db8::2 +dnssec $query >/dev/null
done
in_client dig +tcp @192.0.2.2 example.org ANY >/dev/null
in_client dig +tries=1 +time=1 -p 5353 @224.0.0.251 printer.local A >/dev/null || true
stop

# DHCP of both families: a lease, and a solicitation without an answer.
cat >"$work/udhcpd.conf" <<U
start 192.0.2.100
end 192.0.2.110
interface eth0
lease_file $work/leases
pidfile $work/udhcpd.pid
opt dns 192.0.2.2
opt router 192.0.2.2
opt subnet 255.255.255.0
U
touch "$work/leases"
if busybox --list | grep -qx udhcpd; then background "$server" busybox udhcpd -f "$work/udhcpd.conf"; fi
record dhcp
in_client timeout 6 dhclient -1 -d -sf /bin/true -lf "$work/dhclient.leases" -pf "$work/dhclient.pid" eth0 >/dev/null 2>&1 || true
in_client timeout 4 dhclient -6 -1 -d -sf /bin/true -lf "$work/dhclient6.leases" -pf "$work/dhclient6.pid" eth0 >/dev/null 2>&1 || true
stop

# TLS and plain HTTP, at usual ports and at others.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=www.example.org \
  -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
for port in 443 8443; do
  background "$server" openssl s_server -quiet -www -accept $port -key "$work/key.pem" -cert "$work/cert.pem"
done
background "$server" python3 -m http.server --bind 192.0.2.2 --directory "$work" 80
answers in_client curl -sk --max-time 1 https://192.0.2.2/
answers in_client curl -sk --max-time 1 https://192.0.2.2:8443/
answers in_client curl -s --max-time 1 http://192.0.2.2/
record tls
in_client curl -sk --resolve www.example.org:443:192.0.2.2 https://www.example.org/ >/dev/null
in_client curl -sk --tls-max 1.2 --resolve www.example.org:443:192.0.2.2 https://www.example.org/ >/dev/null
in_client curl -sk --resolve www.example.org:8443:192.0.2.2 https://www.example.org:8443/ >/dev/null
in_client curl -s http://192.0.2.2/ >/dev/null
in_client curl -s --max-time 1 http://192.0.2.2:81/ >/dev/null || true
stop

# SSH.
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
mkdir -p /run/sshd
background "$server" /usr/sbin/sshd -D -e -f /dev/null -h "$work/host" -p 22 -o PidFile=none
answers in_client ssh-keyscan -T 1 192.0.2.2
record ssh
in_client ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -F /dev/null nobody@192.0.2.2 true \
  >/dev/null 2>&1 || true
stop

# Initial packets of QUIC, without an answer.
record quic
in_client timeout 8 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/chromium" --enable-quic \
  --origin-to-force-quic-on=www.example.org:443 --host-resolver-rules='MAP * 192.0.2.2' --disable-background-networking \
  --dump-dom https://www.example.org/ >/dev/null 2>&1 || true
stop
ls -l "$folder"
