import { Worker } from 'node:worker_threads';
import type { Stop } from '../base/resources';
import { workerEntry } from '../base/worker-entry';

/** Postgres' number for the type BIGINT. */
export const BIGINT_OID = 20;

/** The members of a PGlite that knex-pglite uses. */
interface EmbeddedDatabase {
  readonly waitReady: Promise<void>;
  readonly closed: boolean;
  query(sql: string, bindings?: readonly unknown[]): Promise<unknown>;
  /** Calls the listener with the payload of each notification. Returns a function that stops listening. */
  listen(channel: string, listener: (payload: string) => void): Promise<Stop>;
  close(): Promise<void>;
}

/** A request of the main thread to the thread that runs the embedded database. */
export type Work =
  | { readonly kind: 'query'; readonly sql: string; readonly bindings: readonly unknown[] | undefined }
  | { readonly kind: 'listen'; readonly channel: string }
  | { readonly kind: 'close' };

export type ToThread = Work & { readonly id: number };

/** A message of the thread: a notification, or the result or the error of a request. */
export type FromThread =
  | { readonly channel: string; readonly payload: string }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: Readonly<Record<string, unknown>> & { readonly message: string } };

/** The id of the thread's first message, which says that the database is open or why it is not. */
export const OPENING = 0;

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens PGlite in a folder, in a thread of its own, because it is WebAssembly and a statement would block the event loop. The
 * thread does not keep the process alive, except while a query waits for its answer.
 */
export function openInThread(folder: string): EmbeddedDatabase {
  const file = require.resolve('./embedded-thread');
  // Tests start the thread from its TypeScript source, which needs `execArgv`.
  const { execArgv } = workerEntry(file);
  const thread = new Worker(file, { workerData: { folder }, execArgv, name: 'embedded database' });
  const waiting = new Map<number, Waiting>();
  const listeners = new Map<string, (payload: string) => void>();
  let lastId = OPENING;
  let ended: Error | undefined;
  let isClosed = false;

  const answerOf = <T>(id: number) => {
    thread.ref();
    return new Promise<T>((resolve, reject) => waiting.set(id, { resolve, reject }));
  };
  const take = (id: number): Waiting | undefined => {
    const found = waiting.get(id);
    waiting.delete(id);
    if (waiting.size === 0) thread.unref();
    return found;
  };
  const ask = async (work: Work): Promise<unknown> => {
    if (ended !== undefined) throw ended;
    lastId += 1;
    const message: ToThread = { ...work, id: lastId };
    thread.postMessage(message);
    return answerOf(lastId);
  };
  const end = (error: Error) => {
    ended = error;
    for (const id of [...waiting.keys()]) take(id)?.reject(error);
  };
  /** Ends the process, because it cannot store anything without the thread of the embedded database. */
  const endUnexpectedly = (error: Error) => {
    end(error);
    throw error;
  };

  const waitReady = answerOf<void>(OPENING);
  thread.on('message', (answer: FromThread) => {
    if ('channel' in answer) return listeners.get(answer.channel)?.(answer.payload);
    const found = take(answer.id);
    if ('result' in answer) found?.resolve(answer.result as never);
    else found?.reject(Object.assign(new Error(answer.error.message), answer.error));
  });
  thread.on('error', endUnexpectedly);
  thread.on('exit', () => {
    const error = new Error('The thread of the embedded database has ended.');
    if (isClosed) end(error);
    else if (ended === undefined) endUnexpectedly(error);
  });
  return {
    waitReady,
    get closed() {
      return isClosed;
    },
    query: (sql, bindings) => ask({ kind: 'query', sql, bindings }),
    listen: async (channel, listener) => {
      listeners.set(channel, listener);
      await ask({ kind: 'listen', channel });
      return async () => void listeners.delete(channel);
    },
    close: async () => {
      isClosed = true;
      await ask({ kind: 'close' });
      await thread.terminate();
    },
  };
}
