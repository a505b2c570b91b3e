import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { BufferedBytes } from '../../../core/http/buffered-bytes';
import { ClientLeft } from '../../../core/http/client-left';
import { JsonScanner } from '../../../core/http/json-scanner';
import { BodyChunks, type BodyLimits, readBody } from '../../../core/http/read-body';
import { MESSAGES_TABLE } from '../../../core/protocols/messages/request';
import { REQUEST_BODY_LIMITS } from '../../../policies/model-request';
import { openAddressGate } from '../../../policies/model-request/address-gate';
import { CallObserver, callRules } from '../../../policies/model-request/observe-call';
import { acceptedRoles } from '../../../policies/model-request/roles';
import { openRequest, refusal, runPolicy } from '../../policies/model-request/support';

const QUICK: BodyLimits = { maxBytes: 1_000, totalMs: 400, slowMs: 100, minBytesPerSecond: 100 };
const RULES = callRules('messages', acceptedRoles(MESSAGES_TABLE.roles).messages, new Set(), openAddressGate([]));
const UNCOUNTED = { add: () => undefined };

async function read(request: ReturnType<typeof openRequest>, limits = QUICK): Promise<readonly Buffer[]> {
  const observer = new CallObserver(RULES);
  return readBody(request, { limits, room: UNCOUNTED, look: new JsonScanner(observer) });
}

describe('a request body', () => {
  it('is refused at the first byte over 20 MB, before the rest of it arrives', async () => {
    const request = openRequest();
    const { result } = runPolicy(request);
    request.write(`{"x":"${'y'.repeat(65_536)}`);
    for (let sent = 0; sent < REQUEST_BODY_LIMITS.maxBytes; sent += 1_048_576)
      request.write(Buffer.alloc(1_048_576, 'y'));
    assert.equal(await refusal(result), 'BODY_TOO_LARGE');
    assert.equal(request.writableEnded, false);
  });

  it('is refused at the first invalid byte, and the rest stays unread', async () => {
    const request = openRequest();
    const { result } = runPolicy(request);
    request.write('{"model":]');
    assert.equal(await refusal(result), 'INVALID_JSON');
    request.write('later');
    request.end();
    const rest: Buffer[] = [];
    for await (const chunk of request) rest.push(chunk as Buffer);
    assert.equal(Buffer.concat(rest).toString(), 'later');
  });

  it('is refused when it arrives too slowly', async () => {
    const request = openRequest();
    const drip = setInterval(() => request.write(' '), 20);
    try {
      assert.equal(await refusal(read(request, { ...QUICK, totalMs: 600_000 })), 'BODY_TIMEOUT');
    } finally {
      clearInterval(drip);
    }
  });

  it('is refused when it arrives steadily but never ends', async () => {
    const request = openRequest();
    const startedMs = performance.now();
    const drip = setInterval(() => request.write('     '), 10);
    try {
      assert.equal(await refusal(read(request)), 'BODY_TIMEOUT');
      assert(performance.now() - startedMs >= QUICK.totalMs - QUICK.slowMs);
    } finally {
      clearInterval(drip);
    }
  });

  it("is read without waiting if it arrived with the request's head, and leaves no listener on its connection", async () => {
    const waited: boolean[] = [];
    const closed: Promise<unknown>[] = [];
    const server = createServer(async (request, response) => {
      closed.push(once(request, 'close'));
      await undefined; // Waits one turn, like the steps before this one.
      const reading = read(request as Parameters<typeof read>[0]);
      waited.push(request.listenerCount('data') > 0);
      response.end(Buffer.concat([...(await reading)]));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const head = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n';
    try {
      for (const pieces of [[`${head}{"x":"a"}`], [head, '{"x":', '"b"}'], [`${head}{"x":"c"}`]]) {
        const answering = once(client, 'data');
        for (const piece of pieces) {
          client.write(piece);
          await sleep(20);
        }
        const [answer] = (await answering) as [Buffer];
        assert(answer.toString().endsWith(pieces.join('').slice(-9)), answer.toString());
      }
      assert.deepEqual(waited, [false, true, false]);
      await Promise.all(closed);
    } finally {
      client.destroy();
      server.close();
    }
  });

  it('is read synchronously if all its announced bytes have arrived, unless it names a stored object of the account', async () => {
    const atOnce: boolean[] = [];
    for (const [named, arrives] of [
      [{}, 'before'],
      [{}, 'after'],
      [{ previous_response_id: 'resp_1' }, 'before'],
    ] as const) {
      const body = JSON.stringify({ model: 'm', input: 'Hello', ...named });
      const request = openRequest({ url: '/v1/responses', headers: { 'content-length': String(body.length) } });
      if (arrives === 'before') request.write(body);
      const { result, isAtOnce } = runPolicy(request);
      if (arrives === 'after') request.end(body);
      atOnce.push(isAtOnce());
      await result.catch(() => undefined);
    }
    assert.deepEqual(atOnce, [true, false, false]);
  });

  it('fails to be read when the client resets or closes the connection', async () => {
    for (const error of [undefined, new Error('aborted')]) {
      const request = openRequest();
      const { result } = runPolicy(request);
      request.write('{"model":');
      request.destroy(error);
      await assert.rejects(result, ClientLeft);
    }
    const gone = openRequest();
    gone.destroy();
    await assert.rejects(runPolicy(gone).result, ClientLeft);
  });
});

describe('the request bodies in memory', () => {
  it('use few buffers, however small the pieces in which they arrived', () => {
    const chunks = new BodyChunks();
    const sent: Buffer[] = [];
    for (let index = 0; index < 30_000; index += 1)
      sent.push(Buffer.alloc(index % 1_000 === 0 ? 5_000 : (index % 7) + 1, index));
    for (const chunk of sent) chunks.push(chunk);
    const kept = chunks.all();
    assert(Buffer.concat([...kept]).equals(Buffer.concat(sent)));
    assert(kept.length < 100, `${kept.length} pieces`);
  });

  const budgetOf = (maxBytes: number, maxBytesPerAccount: number) => {
    const budget = new BufferedBytes({ maxBytes, maxBytesPerAccount });
    const endings: (() => void)[] = [];
    return {
      open: (accountId: string, announced = 0) =>
        budget.open({ accountId, onEnd: (work) => endings.push(work) }, announced),
      endAll: () => {
        for (const end of endings.splice(0)) end();
      },
    };
  };
  const overloaded = { code: 'OVERLOADED' };

  it("of one account take at most the account's share, and announced bytes count at once", () => {
    const { open, endAll } = budgetOf(1_000_000, 200_000);
    const first = open('one', 150_000);
    assert.throws(() => open('one', 100_000), overloaded);
    assert.throws(() => open('one').add(100_000), overloaded);
    open('two', 100_000).add(100_000);
    first.add(150_000);
    endAll();
    open('one', 200_000).add(200_000);
  });
});
