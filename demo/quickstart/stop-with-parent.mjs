// Imported by the programs of the quick start before anything else. The channel to the quick start closes when that stops
// them, and also when it is killed: then nobody else would.
import { isMainThread } from 'node:worker_threads';
import { STOPS_WITHIN_MS } from './stops-within.mjs';

const EXIT_KILLED = 1;

if (isMainThread && process.channel) {
  process.once('disconnect', stop);
  // What is done when the channel closes must not keep a program from ending by itself.
  process.channel.unref();
} else if (isMainThread) {
  process.exit(EXIT_KILLED);
}

function stop() {
  // Nobody may be there to read what is printed.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  setTimeout(() => process.exit(EXIT_KILLED), STOPS_WITHIN_MS).unref();
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(EXIT_KILLED);
}
