import type { CommandSignal } from '../supplier';

/** The variable that marks every command. All processes that the command starts inherit it. */
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

/**
 * Signals the processes of a command from inside the instance. These are the processes with its mark in their environment, and
 * their whole sessions, because the engine begins a session with every exec. `$1` is the mark with the command's id. `$2` is the
 * signal's name without SIG, or 0 to only look. Before KILL it stops them all, until no new one is found, so that none starts
 * another meanwhile. It starts no process itself, because a command may have used up the instance's limit. Exits with 0 if there
 * was one, with 1 if there was none, with 2 if some are left.
 */
const SCRIPT = `
is_marked() {
  while read -r line || [ -n "$line" ]; do
    case "$line" in *"$mark"*) return 0;; esac
  done 2>/dev/null < "$1/environ"
  return 1
}
session_of() {
  all=
  while read -r line || [ -n "$line" ]; do all="$all $line"; done 2>/dev/null < "$1/stat"
  set -- \${all##*) }
  session=$4
  [ -n "$session" ] && [ "$1" != Z ]
}
find_all() {
  sessions=' ' found=
  for folder in /proc/[0-9]*; do
    is_marked "$folder" && session_of "$folder" && sessions="$sessions$session "
  done
  [ "$sessions" = ' ' ] && return
  for folder in /proc/[0-9]*; do
    session_of "$folder" || continue
    case "$sessions" in *" $session "*) found="$found \${folder#/proc/}";; esac
  done
}
mark=$1 signal=$2 any=1 stopped= round=0
while [ $round -lt 50 ]; do
  find_all
  [ -z "$found" ] && exit $any
  any=0
  [ "$signal" = 0 ] && exit 0
  if [ "$signal" != KILL ]; then
    kill -s "$signal" $found 2>/dev/null
    exit 0
  fi
  if [ "$found" = "$stopped" ]; then kill -s KILL $found 2>/dev/null; else kill -s STOP $found 2>/dev/null; fi
  stopped=$found
  round=$((round + 1))
done
exit 2
`;

/** The exit code of `signalCommand` if some processes are left. */
export const SOME_ARE_LEFT = 2;

export function signalCommand(commandId: string, signal: CommandSignal | 0): readonly string[] {
  return [
    '/bin/sh',
    '-c',
    SCRIPT,
    'signal',
    `${COMMAND_MARK}=${commandId}`,
    signal === 0 ? '0' : signal.slice('SIG'.length),
  ];
}
