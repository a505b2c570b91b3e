/** The limit for Node: the cost of a gateway that adds nothing. WORKERS sets the number of processes behind one socket. */
import cluster from 'node:cluster';
import { serveRelay } from './relay.mjs';

const workers = Number(process.env.WORKERS ?? 1);

if (workers > 1 && cluster.isPrimary) {
  // All workers listen on the port of the first.
  cluster.once('message', (_worker, message) => process.send(message));
  for (let count = 0; count < workers; count += 1) cluster.fork();
} else {
  serveRelay();
}
