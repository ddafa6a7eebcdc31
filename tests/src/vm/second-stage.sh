# Runs as the first process on the host's files: mounts what a started system has, loads modules, runs the script.
# The folder of the run brings `settings` (MODULE_FOLDER, MODULES) and `script`; it takes `stdout`, `stderr`, `exit`.
run=/run/gateway-vm
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8

fault() {
    echo "gateway-vm: $*"
    /bin/busybox poweroff -f
}

. $run/settings

mkdir -p /dev/pts /dev/shm /run/lock /run/netns
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t bpf bpf /sys/fs/bpf || fault "no bpffs"
mount -t debugfs debugfs /sys/kernel/debug || fault "no debugfs"
mount -t cgroup2 cgroup2 /sys/fs/cgroup || fault "no cgroup2"

mkdir -p /lib/modules
mount --bind "$MODULE_FOLDER" /lib/modules || fault "the kernel's modules are not at $MODULE_FOLDER"
for module in $MODULES; do
    modprobe "$module" || fault "the module $module does not load"
done
hostname guest
ip link set lo up

cd /
/bin/sh $run/script >$run/stdout 2>$run/stderr </dev/null
echo $? >$run/exit.part
mv $run/exit.part $run/exit
sync
/bin/busybox poweroff -f
