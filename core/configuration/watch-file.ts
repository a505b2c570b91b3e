import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { startLoop } from '../base/loop';
import type { Stop } from '../base/resources';
import { errorCode } from '../base/safe-error';

/** Every tenth poll reads the file even if its size and times seem unchanged, because some disks store modification times in whole seconds. */
const READ_EVERY_LOOKS = 10;

/**
 * Calls back when a file has changed and two polls in a row have found the same state and content. The callback therefore never gets a
 * half-written file. The function polls, because the system reports no change behind a symbolic link (how Kubernetes swaps a ConfigMap) or
 * on another machine's disk.
 * @returns a function that stops this
 */
export function watchFile(path: string, whenChanged: () => void, everyMs = 1_000): Stop {
  // The file's content is read at once, so that a change before the first poll is reported, too.
  let taken = digestNow(path);
  let seen: string | undefined;
  let state: string | undefined;
  let looks = 0;
  const look = async () => {
    const before = state;
    state = await stateOf(path);
    looks += 1;
    const isSame = state === before && looks % READ_EVERY_LOOKS !== 0;
    const now: string = (isSame ? seen : undefined) ?? (await readFile(path).then(hash, errorCode));
    if (now !== taken && now === seen && state === before) {
      taken = now;
      whenChanged();
    }
    seen = now;
  };
  return startLoop(look, { everyMs, whenFailed: () => undefined }).stop;
}

/** The code of a read error stands for the content of an unreadable file, because a file that disappears has changed, too. */
function digestNow(path: string): string {
  try {
    return hash(readFileSync(path));
  } catch (error) {
    return errorCode(error);
  }
}

/** Returns a text that changes whenever the file changes, even if the path is a symbolic link to the file. */
async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return errorCode(error);
  }
}

function hash(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64');
}
