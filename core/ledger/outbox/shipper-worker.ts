/** The program of the shipper's thread (shipper-thread.ts): a shipper with its own connections to Redis and Postgres. */
import { parentPort, workerData } from 'node:worker_threads';
import { pino } from 'pino';
import { log } from '../../base/log';
import { openPostgres } from '../../storage/database';
import { connectRedis } from '../../storage/redis';
import { RedisLedger } from '../redis/redis-ledger';
import { startShipper } from './shipper';
import type { ShipperAddresses, ToGateway, ToShipper } from './shipper-thread';

/** The most connections to Postgres: one for the transaction that ships, and a second one that replaces the first if the first hangs. */
const MAX_CONNECTIONS = 2;
const REPORT_EVERY_MS = 2_000;

function main(): void {
  const { redisUrl, databaseUrl } = workerData as ShipperAddresses;
  // The shipper's thread does not log connection errors, because the gateway's own connections report an unreachable Redis or Postgres.
  const silent = pino({ enabled: false });
  const ledger = new RedisLedger({ redis: connectRedis(redisUrl, silent) });
  const database = openPostgres(databaseUrl, { log: silent, maxConnections: MAX_CONNECTIONS });
  // The gateway's thread has already collected notices of new entries ("nudges"), so `collectMs` is 0 in this thread.
  const post = (message: ToGateway) => parentPort?.postMessage(message);
  const shipper = startShipper({ ledger, database, log, collectMs: 0, onWritten: (written) => post({ written }) });
  const reports = setInterval(() => post({ oldestAgeMs: shipper.oldestAgeMs() }), REPORT_EVERY_MS);

  const stop = async () => {
    await shipper.stop();
    clearInterval(reports);
    await ledger.close();
    await database.destroy();
    parentPort?.close();
  };
  parentPort?.on('message', (message: ToShipper) => {
    if (message === 'stop') void stop();
    else for (const shard of message.nudged) shipper.nudgeShard(shard);
  });
}

main();
