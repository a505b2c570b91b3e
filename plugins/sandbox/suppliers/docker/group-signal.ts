import type { CommandSignal } from '../supplier';

/** Set for every command, and inherited by all it starts. */
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

/**
 * Finds the processes of a command from inside the instance: those that carry its mark in their environment, and those of
 * their sessions, for the engine begins a session with every exec. `$1` is the mark with the command's id, `$2` the signal's
 * name without SIG, or 0 to only look. Those that are to be killed are stopped first, until nobody new is found: so nobody is
 * left who starts others meanwhile. Nothing here starts a process: a command may have taken all the instance may have.
 * Exits with 0 when there was one, with 1 when there was none, with 2 when some are left.
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

/** What `signalCommand` exits with. */
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
