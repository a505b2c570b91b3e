import type { IncomingMessage } from 'node:http';
import type { AccountRoute } from '../../../core/api/route';
import { versionTag } from '../../../core/http/etag';
import { sendJson } from '../../../core/http/http';
import { integerReader, readQuery, wordsReader } from '../../../core/http/query';
import { readRecord, type SandboxRecord } from '../books/record';
import { RECORD, RECORD_HEADERS } from '../books/shapes';
import { isFinal, OBSERVED_STATES, type ObservedState } from '../life/states';
import type { SandboxService } from '../service';

const DEFAULT_WAIT_SECONDS = 30;

const READERS = {
  waitFor: wordsReader(OBSERVED_STATES),
  waitSeconds: integerReader(0, 60, { default: DEFAULT_WAIT_SECONDS }),
};

/** How often a waiting request reads the sandbox again, because a change event may be lost. */
const LOOK_EVERY_MS = 2_000;

export function showSandboxRoute(service: SandboxService): AccountRoute {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}',
    summary: 'A sandbox; with waitFor once it is in one of these states, or after waitSeconds as it is.',
    query: READERS,
    answers: { 200: { description: 'Its record.', schema: RECORD, headers: RECORD_HEADERS } },
    errors: ['SANDBOX_NOT_FOUND'],
    handle: async ({ accountId, params, query }, request, response) => {
      const { waitFor, waitSeconds = DEFAULT_WAIT_SECONDS } = readQuery(query, READERS);
      const read = () => readRecord(service.database, accountId, params['id'] ?? '');
      const record =
        waitFor === undefined ? await read() : await waitUntil(service, request, read, waitFor, waitSeconds);
      sendJson(response, 200, record, { etag: versionTag(record.stateVersion) });
    },
  };
}

async function waitUntil(
  { changes, gateway }: SandboxService,
  request: IncomingMessage,
  read: () => Promise<SandboxRecord>,
  states: readonly ObservedState[],
  waitSeconds: number,
): Promise<SandboxRecord> {
  const deadlineMs = performance.now() + waitSeconds * 1_000;
  let record = await read();
  for (;;) {
    const leftMs = deadlineMs - performance.now();
    const isThere = states.includes(record.observedState) || isFinal(record.observedState);
    if (isThere || leftMs <= 0 || request.destroyed || gateway.isStopping()) return record;
    // Subscribe before reading, so that a change in between is not missed.
    const change = changes.next(record.id, Math.min(LOOK_EVERY_MS, leftMs));
    record = await read();
    if (states.includes(record.observedState) || isFinal(record.observedState)) return record;
    await change;
    record = await read();
  }
}
