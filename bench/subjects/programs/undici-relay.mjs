/** The limit for Node: what a gateway costs that does nothing for its money. With WORKERS, in so many processes behind one socket. */
import cluster from 'node:cluster';
import { serveRelay } from './relay.mjs';

const workers = Number(process.env.WORKERS ?? 1);

if (workers > 1 && cluster.isPrimary) {
  // All of them listen on the port of the first.
  cluster.once('message', (_worker, message) => process.send(message));
  for (let count = 0; count < workers; count += 1) cluster.fork();
} else {
  serveRelay();
}
