#!/usr/bin/env bash
# npm run rehearse [-- quickstart|test|ci ...]
#
# Does what a newcomer does first, on a machine that has nothing yet: makes a minimal Debian of this release in a temporary folder, puts
# Node and npm into it, clones HEAD and runs the README's commands there: the quick start with one call, then `npm test`. `ci` runs
# `.ci/run`. Exit status 1 if a step failed, 2 if this machine cannot rehearse.
set -euo pipefail

# The first process of a PID namespace: makes the folder $2 the root of its mounts, and runs the rest there. All processes end with it.
if [ "${1:-}" = --enter ]; then
  root=$2
  shift 2
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  for name in dev/shm run; do mount -t tmpfs -o mode=1777 tmpfs "$root/$name"; done
  # pivot_root, because neither the Docker engine nor bubblewrap works in a chroot.
  cd "$root"
  pivot_root . .
  umount --lazy .
  cd /srv/checkout
  # No `exec`: the first process must wait for processes whose parent has ended.
  status=0
  "$@" || status=$?
  exit $status
fi

# Inside: starts the quick start, makes a call with the address and key that it prints, and stops it as Ctrl-C does.
if [ "${1:-}" = --quickstart ]; then
  # The network is the machine's, where other programs may have the usual ports.
  read -r PORT ADMIN_PORT DEMO_PORT < <(node -e '
    const servers = [0, 1, 2].map(() => require("node:net").createServer().listen(0, "127.0.0.1"));
    setTimeout(() => { console.log(...servers.map((server) => server.address().port)); process.exit(); }, 100);')
  export PORT ADMIN_PORT DEMO_PORT
  printed=$(mktemp)
  # A process group of its own, to which Ctrl-C goes.
  setsid npm run quickstart >"$printed" 2>&1 &
  program=$!
  tail -f "$printed" &
  until grep -q '^Ctrl-C ends both programs' "$printed"; do
    kill -0 $program 2>/dev/null || { echo 'the quick start ended before it was ready'; exit 1; }
    sleep 1
  done
  node -e '
    const printed = require("node:fs").readFileSync(process.argv[1], "utf8");
    const [url, key] = ["calls", "API key"].map((name) => RegExp(`^  ${name} +(\\S+)$`, "m").exec(printed)[1]);
    const body = { model: "demo-model", max_tokens: 200, messages: [{ role: "user", content: "Hello" }] };
    const headers = { "x-api-key": key, "content-type": "application/json" };
    fetch(`${url}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) })
      .then(async (answer) => {
        const text = await answer.text();
        console.log(answer.status, text);
        if (!answer.ok || !text.includes(`"text"`)) process.exit(1);
      });' "$printed"
  kill -INT -- -$program
  for ((second = 0; second < 60; second += 1)); do
    kill -0 $program 2>/dev/null || exit 0
    sleep 1
  done
  echo 'the quick start did not end within a minute of Ctrl-C'
  exit 1
fi

unusable() { echo "$1" >&2; exit 2; }
. /etc/os-release 2>/dev/null || true
[ "${ID:-}" = debian ] || unusable 'A rehearsal needs Debian: it makes the bare machine from the same release.'
[ "$(id -u)" = 0 ] || unusable 'A rehearsal needs root, for its own mounts and namespaces.'
command -v debootstrap >/dev/null || unusable 'A rehearsal needs debootstrap. Install it as root: apt-get install debootstrap'
for name in "$@"; do
  case $name in quickstart | test | ci) ;; *) unusable "expected quickstart, test or ci, not \"$name\"" ;; esac
done
[ $# -gt 0 ] || set -- quickstart test

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -z "$(git -C "$project" status --porcelain)" ] || echo 'Changes that are not committed are not rehearsed.' >&2
folder=$(mktemp -d -t tollgate-rehearsal-XXXXXX)
root=$folder/root
table=$folder/table

# A Docker engine leaves its bridges in the machine's network: a bridge has the first digits of its network's id.
clean() {
  for bridge in /sys/class/net/br-*; do
    grep -rlqs "${bridge##*/br-}" "$root"/var/lib/docker/network "$root"/tmp/*/data/network && ip link delete "${bridge##*/}"
  done
  rm -rf --one-file-system "$folder"
}
trap clean EXIT
trap 'exit 130' INT TERM

# step NAME COMMAND…: runs a command, and writes its time to the table.
step() {
  local name=$1 begun=$SECONDS result=''
  shift
  printf '\n== %s\n' "$name" >&2
  "$@" >&2 || result=failed
  printf '%-14s %5d s %s\n' "$name" $((SECONDS - begun)) "$result" >>"$table"
  [ -z "$result" ]
}

debian() {
  local targets archive proxy
  targets=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(RELEASE) $(COMPONENT)' 'Created-By: Packages')
  archive=$(awk -v name="$VERSION_CODENAME" '($2 == name || $3 == name) && $4 == "main" && /^(https?|file):/ { print $1; exit }' <<<"$targets")
  [ -n "$archive" ] || { echo "apt has no source for $VERSION_CODENAME main. See: apt-get indextargets"; return 1; }
  proxy=$(apt-config dump | sed -n 's/^Acquire::http::Proxy "\(.*\)";$/\1/p')
  http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase --include=ca-certificates,git "$VERSION_CODENAME" "$root" "$archive" &&
    rm "$root/etc/apt/sources.list"
}

# Copies what leads to package archives, names and trusted peers, and Node with npm, each to the path it has here.
furnish() {
  local path npm
  npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
  for path in /etc/apt/{sources.list,preferences,auth.conf}{,.d} /etc/apt/{keyrings,trusted.gpg,trusted.gpg.d} /usr/share/keyrings \
    /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/local/share/ca-certificates \
    ${NODE_EXTRA_CA_CERTS:-} ${SSL_CERT_FILE:-} ${GIT_SSL_CAINFO:-} $(npm config get userconfig globalconfig cafile | sed 's/^.*=//'); do
    [ ! -e "$path" ] || { mkdir -p "$(dirname "$root$path")" && cp --archive -H --no-target-directory "$path" "$root$path"; } || return
  done
  for path in "$(command -v node)" "$(command -v npm)" "$(command -v npx)" "$npm"; do
    mkdir -p "$(dirname "$root$path")" && cp --archive --no-target-directory "$path" "$root$path" || return
  done
  mkdir -p "$root$HOME" && apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/99-rehearsal"
}

# Runs a command in the bare machine, with what leads to the network as its only environment.
within() {
  local passed
  mapfile -t passed < <(env | grep -iE '^((https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|GIT_SSL_CAINFO|npm_config_registry)=')
  env -i "${passed[@]}" HOME="$HOME" LANG=C.UTF-8 PATH="$(dirname "$(command -v node)"):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    unshare --mount --propagation private --uts --ipc --pid --fork --kill-child -- "$project/test/rehearse.sh" --enter "$root" "$@"
}

failed=0
step debootstrap debian && step 'Node' furnish && step 'git clone' git clone --quiet "file://$project" "$root/srv/checkout" ||
  { cat "$table"; exit 1; }
for name in "$@"; do
  case $name in
    quickstart) step quickstart within bash test/rehearse.sh --quickstart || failed=1 ;;
    test) step 'npm test' within npm test || failed=1 ;;
    ci) step '.ci/run' within bash .ci/run || failed=1 ;;
  esac
done
cat "$table"
exit $failed
