#!/bin/busybox sh
# Runs as the first process of the initial file system: puts the host's files under a layer in memory and goes on there.
# Shares: `host` is the host's root, `run` the folder of this run.
b=/bin/busybox

fault() {
    echo "gateway-vm: $*"
    $b poweroff -f
}

$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do
    $b insmod "$module" || fault "$module does not load"
done

share=trans=virtio,version=9p2000.L,msize=524288
$b mount -t 9p -o ro,cache=loose,$share host /lower || fault "no share of the host's root"
$b mount -t tmpfs -o size=75% tmpfs /layer
$b mkdir /layer/upper /layer/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work overlay /root ||
    fault "no layer over the host's root"

for folder in dev proc sys run; do
    $b mkdir -p "/root/$folder"
done
for folder in dev proc sys; do
    $b mount --move "/$folder" "/root/$folder"
done
$b mount -t tmpfs -o mode=755 tmpfs /root/run
$b mkdir /root/run/gateway-vm
$b mount -t 9p -o rw,cache=none,$share run /root/run/gateway-vm || fault "no share of the run's folder"
exec $b switch_root /root /bin/sh /run/gateway-vm/second-stage
