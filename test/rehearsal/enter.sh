#!/bin/sh
# enter.sh ROOT CGROUP HIERARCHIES COMMAND…
#
# Makes the folder ROOT the root of this mount namespace, and runs COMMAND in it. This program is the first process of a PID
# namespace, and enclose.sh has started it.
set -eu

root=$1 cgroup=$2 hierarchies=$3
shift 3

# The root of a mount namespace must be a mount point.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"

[ "$hierarchies" = /sys/fs/cgroup ] || mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
for hierarchy in $hierarchies; do
  mkdir -p "$root$hierarchy"
  mount --bind "$hierarchy/$cgroup" "$root$hierarchy"
done

# pivot_root, because neither the Docker engine nor bubblewrap works in a chroot.
cd "$root"
pivot_root . .
umount --lazy .

# In cgroup v2 a group that has processes cannot give its controllers to groups below it.
for hierarchy in $hierarchies; do
  [ -s "$hierarchy/cgroup.controllers" ] || continue
  mkdir "$hierarchy/first"
  echo $$ >"$hierarchy/first/cgroup.procs"
  sed 's/[^ ]*/+&/g' "$hierarchy/cgroup.controllers" >"$hierarchy/cgroup.subtree_control"
done

# No `exec`: the first process must wait for processes whose parent has ended.
cd /
status=0
"$@" || status=$?

# A frozen process cannot be killed, and this namespace ends when all of its processes have.
find /sys/fs/cgroup -name freezer.state | while read -r state; do echo THAWED >"$state"; done
exit $status
