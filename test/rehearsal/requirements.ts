import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Machine {
  readonly uid: number | undefined;
  /** The text of /etc/os-release; empty where there is none. */
  readonly osRelease: string;
  readonly has: (program: string) => boolean;
}

/** Programs that a rehearsal uses, and the Debian packages that have them. */
const PROGRAMS: Readonly<Record<string, string>> = {
  debootstrap: 'debootstrap',
  git: 'git',
  ip: 'iproute2',
  setpriv: 'util-linux',
  unshare: 'util-linux',
};

/** Returns what keeps this machine from rehearsing, with what to do about it; undefined when nothing does. */
export function unmetRequirement({ uid, osRelease, has }: Machine): string | undefined {
  if (fieldOf(osRelease, 'ID') !== 'debian' || codenameOf(osRelease) === undefined)
    return 'A rehearsal needs Debian: it makes the bare machine from the same release.';
  if (uid !== 0) return 'A rehearsal needs root, for its own mounts and namespaces.';
  const missing = Object.keys(PROGRAMS).find((program) => !has(program));
  if (missing === undefined) return undefined;
  return `A rehearsal needs the program "${missing}". Install it as root (apt-get install ${PROGRAMS[missing]}), and have it on PATH.`;
}

/** Returns the name of the Debian release, such as `bookworm`. */
export function codenameOf(osRelease: string): string | undefined {
  return fieldOf(osRelease, 'VERSION_CODENAME');
}

function fieldOf(osRelease: string, name: string): string | undefined {
  return new RegExp(`^${name}="?([^"\\n]+)"?$`, 'm').exec(osRelease)?.[1];
}

export function thisMachine(): Machine {
  const path = '/etc/os-release';
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return {
    uid: process.getuid?.(),
    osRelease: existsSync(path) ? readFileSync(path, 'utf8') : '',
    has: (program) => folders.some((folder) => existsSync(join(folder, program))),
  };
}
