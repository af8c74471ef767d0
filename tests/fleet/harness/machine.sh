#!/bin/sh
# Boots a machine: systemd is its process 1, and its root shares only the network and, read-only, the programs with this
# host. Side effects of systemd's boot (emptying /tmp, setting kernel variables) stay in the machine.
#
#   machine.sh ROOT GROUP PROGRAMS
#
# ROOT contains its own directories (/etc, /home, …); GROUP is an empty cgroup v2; PROGRAMS is its /usr/local/bin. It stops
# with this process.
set -eu
if [ "$$" != 1 ]; then
    # Before the cgroup namespace is created, so that this group is its root.
    echo "$$" >"$2/cgroup.procs"
    exec unshare --pid --fork --kill-child --mount --cgroup --ipc --uts sh "$0" "$@"
fi
root=$1 programs=$3
cd "$root"
mount --bind . .
cd "$root"
mkdir -p usr proc sys dev run tmp var
mount --bind -o ro /usr usr
mount --bind -o ro "$programs" usr/local/bin
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then
        ln -s "$(readlink "/$name")" "$name"
    elif [ -d "/$name" ]; then
        mkdir "$name"
        mount --bind -o ro "/$name" "$name"
    fi
done
mount -t proc proc proc
mount --bind -o ro proc/sys proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mkdir -m 1777 dev/shm
ln -s /proc/self/fd dev/fd
pivot_root . .
umount -l .
cd /
# Mounts for a service must be visible to it.
mount --make-rshared /
# Only its own units, none of the host's.
exec env -i container=tests PATH=/usr/bin:/usr/sbin SYSTEMD_UNIT_PATH=/etc/systemd/system \
    /lib/systemd/systemd --system --unit=multi-user.target
