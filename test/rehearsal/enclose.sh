#!/bin/sh
# enclose.sh CGROUP HIERARCHIES COMMAND…
#
# Runs COMMAND with the folder CGROUP of each cgroup hierarchy as the root of that hierarchy. HIERARCHIES are their mount points,
# separated by spaces.
set -eu

cgroup=$1 hierarchies=$2
shift 2

for hierarchy in $hierarchies; do echo $$ >"$hierarchy/$cgroup/cgroup.procs"; done
exec unshare --cgroup -- "$@"
