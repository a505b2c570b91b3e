import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/**
 * Calls back when a file says something else and has said it for two looks: half a file is not taken for a whole one. It looks
 * instead of being told, because nobody tells of a change behind a symbolic link (how Kubernetes swaps a ConfigMap) or on
 * another machine's disk.
 * @returns ends it
 */
export function watchFile(path: string, whenChanged: () => void, everyMs = 1_000): () => void {
  let taken: string | undefined;
  let seen: string | undefined;
  let isLooking = false;
  const look = async () => {
    const now = await digestOf(path);
    taken ??= now;
    if (now !== taken && now === seen) {
      taken = now;
      whenChanged();
    }
    seen = now;
  };
  const lookAlone = () => {
    if (isLooking) return;
    isLooking = true;
    void look().finally(() => {
      isLooking = false;
    });
  };
  lookAlone();
  const timer = setInterval(lookAlone, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** A file that is not there is a change too. */
async function digestOf(path: string): Promise<string> {
  try {
    return createHash('sha256')
      .update(await readFile(path))
      .digest('base64');
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}
