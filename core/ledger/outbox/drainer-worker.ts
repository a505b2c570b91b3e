/** The thread of drainer-thread.ts: a drainer with its own connections to Redis and Postgres. */
import { parentPort, workerData } from 'node:worker_threads';
import { pino } from 'pino';
import { log } from '../../log';
import { openPostgres } from '../../storage/database';
import { connectRedis } from '../../storage/redis';
import { RedisLedger } from '../redis/redis-ledger';
import { startDrainer } from './drainer';
import type { DrainerAddresses, ToDrainer, ToGateway } from './drainer-thread';

/** One for the transaction of a drain; a second one takes over from one that hangs. */
const MAX_CONNECTIONS = 2;
const REPORT_EVERY_MS = 1_000;

function main(): void {
  const { redisUrl, databaseUrl } = workerData as DrainerAddresses;
  // The gateway's own connections report that Redis or Postgres is not reachable.
  const silent = pino({ enabled: false });
  const ledger = new RedisLedger({ redis: connectRedis(redisUrl, silent) });
  const database = openPostgres(databaseUrl, { log: silent, maxConnections: MAX_CONNECTIONS });
  // The gateway's thread has collected them.
  const tell = (message: ToGateway) => parentPort?.postMessage(message);
  const drainer = startDrainer({ ledger, database, log, collectMs: 0, onWritten: (written) => tell({ written }) });
  const reports = setInterval(() => tell({ oldestAgeMs: drainer.oldestAgeMs() }), REPORT_EVERY_MS);

  const stop = async () => {
    await drainer.stop();
    clearInterval(reports);
    await ledger.close();
    await database.destroy();
    parentPort?.close();
  };
  parentPort?.on('message', (message: ToDrainer) => {
    if (message === 'stop') void stop();
    else for (const shard of message.nudged) drainer.nudgeShard(shard);
  });
}

main();
