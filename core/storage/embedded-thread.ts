/** The program of the embedded database's thread: one PGlite, which answers queries in the order in which they arrive. */
import { setFlagsFromString } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { BIGINT_OID, type FromThread, OPENING, type ToThread } from './embedded';
import { unpackFirstDatabase } from './first-database';

const { folder } = workerData as { readonly folder: string };
unpackFirstDatabase(folder);
// V8's optimization of WebAssembly is disabled, because at each start it would cost 4 s of CPU and 80 MB (Node 24: 500 MB) for a few statements.
setFlagsFromString('--no-wasm-tier-up');
setFlagsFromString('--no-wasm-dynamic-tiering');
const pglite = new PGlite(folder, { parsers: { [BIGINT_OID]: BigInt } });

const send = (message: FromThread) => parentPort?.postMessage(message);

function answer(id: number, work: Promise<unknown>): void {
  work.then(
    (result) => send({ id, result }),
    (thrown: unknown) => {
      const { name, message, stack, ...fields } = thrown as Error & Record<string, unknown>;
      const plain = Object.entries(fields).filter(([, value]) => ['string', 'number'].includes(typeof value));
      send({ id, error: { ...Object.fromEntries(plain), name, message, stack } });
    },
  );
}

/** Performs one request of the main thread. PGlite performs one at a time, in the order of their arrival. */
async function perform(asked: ToThread): Promise<unknown> {
  if (asked.kind === 'query') return pglite.query(asked.sql, asked.bindings as unknown[]);
  if (asked.kind === 'close') return pglite.close();
  const { channel } = asked;
  await pglite.listen(channel, (payload) => send({ channel, payload }));
  return undefined;
}

answer(OPENING, pglite.waitReady);
parentPort?.on('message', (asked: ToThread) => answer(asked.id, perform(asked)));
