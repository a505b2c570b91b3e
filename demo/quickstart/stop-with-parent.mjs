// The quick start's programs import this file first. Their channel to the quick start closes when it stops them or is killed;
// after a kill, nothing else would stop them.
import { isMainThread } from 'node:worker_threads';

const EXIT_KILLED = 1;
/** How long a program may take to stop before it exits anyway. */
const STOPS_WITHIN_MS = 30_000;

if (isMainThread && process.channel) {
  process.once('disconnect', stop);
  // The channel must not keep the program running.
  process.channel.unref();
} else if (isMainThread) {
  process.exit(EXIT_KILLED);
}

function stop() {
  // The reader of the output may be gone.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  setTimeout(() => process.exit(EXIT_KILLED), STOPS_WITHIN_MS).unref();
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(EXIT_KILLED);
}
