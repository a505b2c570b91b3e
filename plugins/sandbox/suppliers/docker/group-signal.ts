import type { CommandSignal } from '../../../../core/supplier';

/** Set for every command, and inherited by all it starts. */
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

/**
 * Finds the processes of a command from inside the instance: those that carry its mark in their environment, and those of
 * their sessions, for the engine begins a session with every exec. `$1` is the command's id, `$2` the signal's name without
 * SIG, or 0 to only look. SIGKILL is repeated until none is left, since they may start others meanwhile.
 * Exits with 0 when there was one, with 1 when there was none.
 */
const SCRIPT = `
session_of() { read -r line < "/proc/$1/stat" && line=\${line##*) } && set -- $line && [ "$1" != Z ] && echo "$4"; }
find_all() {
  sessions=' ' found=
  for folder in /proc/[0-9]*; do
    grep -q "${COMMAND_MARK}=$id" "$folder/environ" 2>/dev/null || continue
    session=$(session_of "\${folder#/proc/}" 2>/dev/null) && sessions="$sessions$session "
  done
  [ "$sessions" = ' ' ] && return
  for folder in /proc/[0-9]*; do
    session=$(session_of "\${folder#/proc/}" 2>/dev/null) || continue
    case "$sessions" in *" $session "*) found="$found \${folder#/proc/}";; esac
  done
}
id=$1 signal=$2 any=1 round=0
while [ $round -lt 50 ]; do
  find_all
  [ -z "$found" ] && break
  any=0
  [ "$signal" = 0 ] && break
  kill -s "$signal" $found 2>/dev/null
  [ "$signal" = KILL ] || break
  round=$((round + 1))
done
exit $any
`;

export function signalCommand(commandId: string, signal: CommandSignal | 0): readonly string[] {
  return ['/bin/sh', '-c', SCRIPT, 'signal', commandId, signal === 0 ? '0' : signal.slice('SIG'.length)];
}
