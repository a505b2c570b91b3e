import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { startLoop } from '../loop';
import type { Stop } from '../resources';

/** So many looks pass before a file is read whose state says that it is the same: some disks keep the time of a change in seconds. */
const READ_EVERY_LOOKS = 10;

/**
 * Calls back when a file says something else and has said it for two looks: half a file is not taken for a whole one. It looks
 * instead of being told, because nobody tells of a change behind a symbolic link (how Kubernetes swaps a ConfigMap) or on
 * another machine's disk.
 * @returns ends it
 */
export function watchFile(path: string, whenChanged: () => void, everyMs = 1_000): Stop {
  // What it says now is known at once: a change that comes before the first look is told of, too.
  let taken = digestNow(path);
  let seen: string | undefined;
  let state: string | undefined;
  let looks = 0;
  const look = async () => {
    const before = state;
    state = await stateOf(path);
    looks += 1;
    const isSame = state === before && looks % READ_EVERY_LOOKS !== 0;
    const now: string = (isSame ? seen : undefined) ?? (await readFile(path).then(hash, codeOf));
    if (now !== taken && now === seen) {
      taken = now;
      whenChanged();
    }
    seen = now;
  };
  return startLoop(look, { everyMs, whenFailed: () => undefined }).stop;
}

function digestNow(path: string): string {
  try {
    return hash(readFileSync(path));
  } catch (error) {
    return codeOf(error);
  }
}

/** What changes with a file, behind a symbolic link too. */
async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return codeOf(error);
  }
}

function hash(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64');
}

/** A file that is not there is a change too. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}
