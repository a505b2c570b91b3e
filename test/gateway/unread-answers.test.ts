import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { askIn, PATH, type TestProtocol } from '../support/calls';
import { MODEL } from '../support/gateway';
import { readMetrics } from '../support/metrics';
import { creation, SANDBOX_GATEWAY, waitForState } from '../support/sandboxes';
import { useGateway, useUpstream } from '../support/story';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import {
  chatAnswer,
  chatStream,
  messagesAnswer,
  messagesStream,
  respond,
  responsesAnswer,
  responsesStream,
  type Script,
} from '../support/upstream';

const MB = 1_048_576;
const EMBED = 'acme-embed';
const TRANSLATED = 'acme-translated';
/** The share of one account. */
const SHARE_BYTES = 64 * MB;
/** What the process may take beyond a share: garbage, and copies of the answer that arrives. */
const GARBAGE_BYTES = 136 * MB;
/** More than the buffers of the system between the gateway and a client that does not read. */
const LARGE_BYTES = 24 * MB;
const CLIENTS = 12;
const TEXT = 'x'.repeat(LARGE_BYTES);

type Owner = {
  readonly accountId: string;
  readonly key: string;
  readonly sandboxId: string;
  readonly commandId: string;
  readonly responseId: string;
};

/** One kind of answer, and the request that gets it. */
interface Kind {
  readonly name: string;
  readonly method?: 'GET' | 'POST';
  readonly path: string | ((owner: Owner) => string);
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** How the upstream answers. */
  readonly upstream?: Script;
  /** How many requests each client sends before it reads anything. */
  readonly pipelined?: number;
  /** The least length of the whole answer. */
  readonly bytes?: number;
  /** Whether each request is an unstreamed call that is charged. */
  readonly charged?: true;
}

const said = { texts: [TEXT], usage: { input: 10, output: 5 } };
const json = { 'content-type': 'application/json' };
const large = Buffer.from(JSON.stringify({ id: 'resp_1', object: 'response', output: [TEXT] }));

const NATIVE = (
  [
    ['messages', messagesAnswer, messagesStream],
    ['chat', chatAnswer, chatStream],
    ['responses', responsesAnswer, responsesStream],
  ] as const
).flatMap(([protocol, answer, stream]): readonly Kind[] => [
  { name: `an unstreamed answer of ${protocol}`, ...call(protocol), upstream: answer(said), charged: true },
  {
    name: `a stream of ${protocol} with events of 3 MB`,
    ...call(protocol, { stream: true, max_tokens: 8_000 }),
    upstream: stream({ texts: Array.from({ length: 8 }, () => TEXT.slice(0, 3 * MB)) }),
  },
  {
    name: `an error of ${protocol}`,
    ...call(protocol),
    upstream: respond({
      status: 400,
      headers: json,
      body: { error: { type: 'invalid_request_error', message: TEXT } },
    }),
  },
]);

const KINDS: readonly Kind[] = [
  ...NATIVE,
  {
    name: 'embeddings',
    path: '/v1/embeddings',
    body: { model: EMBED, input: 'Hello' },
    upstream: respond({
      headers: json,
      body: { object: 'list', data: [TEXT], model: EMBED, usage: { prompt_tokens: 5, total_tokens: 5 } },
    }),
    charged: true,
  },
  {
    name: 'a translated answer',
    ...call('chat', { model: TRANSLATED }),
    upstream: messagesAnswer({ ...said, texts: [TEXT.slice(0, 900_000)] }),
    pipelined: 25,
    bytes: 900_000,
    charged: true,
  },
  {
    name: 'a translated stream',
    ...call('chat', { model: TRANSLATED, stream: true, max_tokens: 8_000 }),
    upstream: messagesStream({ texts: Array.from({ length: 8 }, () => TEXT.slice(0, 3 * MB)) }),
  },
  { name: 'a stored response', path: ({ responseId }) => `/v1/responses/${responseId}`, upstream: stored() },
  {
    name: 'a repeated answer',
    ...call('messages'),
    headers: { 'idempotency-key': 'repeated' },
    upstream: messagesAnswer(said),
  },
  { name: "a file's bytes", path: ({ sandboxId }) => `/v1/sandboxes/${sandboxId}/files/content?path=large` },
  {
    name: 'the output of a command',
    path: ({ sandboxId, commandId }) => `/v1/sandboxes/${sandboxId}/commands/${commandId}`,
    pipelined: 25,
    bytes: 1 * MB,
  },
  {
    name: 'the events of a command',
    path: ({ sandboxId, commandId }) => `/v1/sandboxes/${sandboxId}/commands/${commandId}/logs?follow=true`,
    pipelined: 25,
    bytes: 1 * MB,
  },
  ...['/v1/usage', '/v1/usage.csv'].map((path) => ({
    name: path,
    path,
    pipelined: 100,
    bytes: 1,
  })),
];

function call(protocol: TestProtocol, more: Record<string, unknown> = {}) {
  return { path: PATH[protocol], body: askIn(protocol, { model: `acme-${protocol}`, ...more }) };
}

function stored(): Script {
  return respond({ headers: json, body: large });
}

describe('Answers that clients do not read', function () {
  this.timeout(240_000);
  const upstream = useUpstream();
  let silent: Owner;
  let other: Owner;
  const open: Socket[] = [];

  const gateway = useGateway(() => {
    const acme = (adapter: string, models: Record<string, object>) => ({ url: upstream.url, adapter, models });
    const embeds = { context: 8_192, maxOutput: 0, estimatedMaxTokens: 0, price: { input: 0.1, output: 0 } };
    return {
      own: true,
      ...SANDBOX_GATEWAY,
      upstreams: {
        messages: acme('messages', { 'acme-messages': {}, [TRANSLATED]: {} }),
        chat: acme('chat', { 'acme-chat': {} }),
        responses: acme('responses', { 'acme-responses': {}, [MODEL]: {} }),
        embeddings: acme('embeddings', { [EMBED]: embeds }),
      },
      system: { answerStore: {} },
    };
  });

  before(async () => {
    [silent, other] = await Promise.all([newOwner(), newOwner()]);
  });
  after(async () => {
    for (const socket of open) socket.destroy();
  });
  beforeEach(() => upstream.reset());
  afterEach(async () => {
    for (const socket of open.splice(0)) socket.destroy();
    await until('the room is free', async () => (await bufferedBytes()) === 0);
    await until('every call has ended', async () => (await readMetrics(gateway)).get('tollgate_calls_in_flight') === 0);
    await until('nothing is held', async () => Number((await gateway.balance(silent.key)).heldUsd) < 1);
  });

  /** Makes a customer with a response that its vendor keeps, a sandbox with files, and a command that has printed. */
  async function newOwner(): Promise<Owner> {
    const { key, accountId } = await gateway.newCustomer('1000');
    const responseId = `resp_of_${key.slice(-4)}`;
    upstream.next(responsesAnswer({ id: responseId }));
    const made = await gateway.call(PATH.responses, { key, body: { model: MODEL, input: 'Hello' } });
    expect(made.status, made.text).to.equal(200);
    const { id } = (await gateway.call('/v1/sandboxes', { key, body: creation('one') })).json;
    await waitForState(gateway, key, id, 'RUNNING');
    const command = `head -c ${LARGE_BYTES} /dev/zero > large; head -c ${4 * MB - 1} /dev/zero > medium; head -c ${MB} /dev/zero | tr '\\0' x`;
    const ran = await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command } });
    expect([ran.status, ran.json.exitCode], ran.text.slice(0, 500)).to.deep.equal([201, 0]);
    return { key, accountId, responseId, sandboxId: id, commandId: ran.json.commandId };
  }

  const bufferedBytes = async () => (await readMetrics(gateway)).get('tollgate_buffered_bytes') ?? Number.NaN;

  function bytesOf({ method, path, body, headers = {} }: Kind, owner: Owner): string {
    const text = body === undefined ? '' : JSON.stringify(body);
    const lines = [
      `${method ?? (body === undefined ? 'GET' : 'POST')} ${typeof path === 'string' ? path : path(owner)} HTTP/1.1`,
      'host: x',
      `x-api-key: ${owner.key}`,
      'content-type: application/json',
      `content-length: ${text.length}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ];
    return `${lines.join('\r\n')}\r\n\r\n${text}`;
  }

  /** Opens a connection on which nothing is read, and sends the request so many times. */
  function ask(kind: Kind, owner = silent): Socket {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(bytesOf(kind, owner).repeat(kind.pipelined ?? 1));
    open.push(socket);
    return socket;
  }

  /** Reads one answer slowly, and returns its head and length. */
  async function readSlowly(kind: Kind, owner: Owner): Promise<{ readonly head: string; readonly bytes: number }> {
    const socket = ask({ ...kind, headers: { ...kind.headers, connection: 'close' }, pipelined: 1 }, owner);
    let head = '';
    let bytes = 0;
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      if (head.length < 2_000) head += chunk.toString('latin1', 0, 2_000);
      bytes += chunk.length;
      if (bytes % 8 === 0) await pause(1);
    }
    return { head, bytes };
  }

  /** Watches the bytes that wait, and the memory of the process, until the returned function is called. */
  async function watch() {
    const before = await residentBytes(gateway.pid);
    const most = { waiting: 0, grown: 0 };
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        most.waiting = Math.max(most.waiting, await bufferedBytes().catch(() => 0));
        most.grown = Math.max(most.grown, (await residentBytes(gateway.pid)) - before);
        await pause(20);
      }
    })();
    return async () => {
      isOver = true;
      await watching;
      return most;
    };
  }

  const recordsOf = async (kind: Kind, since: string) => {
    const { json: page } = await gateway.admin(
      'GET',
      `/admin/v1/usage?limit=1000&account=${silent.accountId}&from=${since}`,
    );
    const { items } = page;
    return (items as Record<string, unknown>[]).filter(
      (each) => each['model'] === (kind.body as { model: string }).model,
    );
  };

  it('are charged and get 503 if no memory is left; the 503 shows the cost and forbids a retry', async () => {
    const kind = KINDS.find(({ path }) => path === '/v1/embeddings') as Kind;
    upstream.always(kind.upstream as Script);
    const { key, accountId } = await gateway.newCustomer('10');
    const owner = { ...silent, key, accountId };
    const unread = Array.from({ length: 3 }, () => ask(kind, owner));
    await until('the room is full', async () => (await bufferedBytes()) > 2 * LARGE_BYTES);
    const refused = await gateway.call('/v1/embeddings', { key, body: kind.body });
    expect(refused.status, refused.text.slice(0, 500)).to.equal(503);
    expect(refused.json.error).to.include({ code: 'OVERLOADED', retryable: false });
    expect(refused.headers).to.include({ 'x-should-retry': 'false', 'x-ai-cost': '0.00000050' });
    const id = refused.headers['x-svc-request-id'] ?? '';
    const expected = { status: 503, errorCode: 'OVERLOADED', billing: 'actual', cost: '0.00000050', inputTokens: 5 };
    expect(await gateway.record(key, id)).to.include(expected);
    for (const socket of unread) socket.destroy();
    await until('the room is free', async () => (await bufferedBytes()) === 0);
    expect((await gateway.call('/v1/embeddings', { key, body: kind.body })).status).to.equal(200);
    expect((await gateway.balance(key)).balanceUsd).to.equal('9.99999750');
  });

  it('do not cause errors for clients that read, however many answers of one account arrive at once', async () => {
    const kind = KINDS.find(({ path }) => path === '/v1/embeddings') as Kind;
    upstream.always(kind.upstream as Script);
    const answers = await Promise.all(Array.from({ length: CLIENTS }, () => readSlowly(kind, other)));
    for (const { head, bytes } of answers) {
      expect(head).to.match(/^HTTP\/1\.1 200 /);
      expect(bytes).to.be.at.least(LARGE_BYTES);
    }
  });

  it('stay within the memory limit of their account if they are frames of WebSockets', async () => {
    upstream.always(responsesStream({ texts: Array.from({ length: 2 }, () => TEXT.slice(0, 3 * MB)) }));
    const stop = await watch();
    const unread = await Promise.all(Array.from({ length: 8 }, () => TestSocket.open(gateway, silent.key)));
    const reader = await TestSocket.open(gateway, other.key);
    try {
      for (const client of unread) {
        client.socket.pause();
        client.send(TestSocket.create({ model: MODEL, max_tokens: 8_000 }));
      }
      await until('every call has reached the upstream', () => upstream.calls.length === unread.length);
      expect((await reader.call({ model: MODEL, max_tokens: 8_000 })).at(-1).type).to.equal('response.completed');
    } finally {
      for (const { socket } of [...unread, reader]) socket.terminate();
    }
    const { waiting } = await stop();
    expect(waiting).to.be.within(MB, SHARE_BYTES + LARGE_BYTES + 65_536);
  });

  for (const kind of KINDS) {
    it(`stay within the memory limit of their account, and are charged exactly: ${kind.name}`, async () => {
      if (kind.upstream !== undefined) upstream.always(kind.upstream);
      if (kind.headers !== undefined) await readSlowly(kind, silent);
      const since = new Date().toISOString();
      const stop = await watch();
      for (let each = 0; each < CLIENTS; each += 1) ask(kind);
      const asked = CLIENTS * (kind.pipelined ?? 1);
      if (kind.charged) {
        const records = await until(
          'every call is charged',
          async () => {
            const all = await recordsOf(kind, since);
            return all.length === asked ? all : undefined;
          },
          120_000,
        );
        const [first] = records;
        for (const record of records) {
          expect(record['cost']).to.equal(first?.['cost']).and.not.equal('0.00000000');
          const isKept = record['status'] === 200;
          expect([record['status'], record['errorCode']]).to.deep.equal(isKept ? [200, null] : [503, 'OVERLOADED']);
        }
        expect(records.filter(({ status }) => status === 200).length, 'kept answers').to.be.at.least(1);
      } else if (kind.upstream !== undefined && kind.headers === undefined)
        await until('every request has reached the upstream', () => upstream.calls.length >= asked);
      const { head, bytes } = await readSlowly(kind, other);
      const { waiting, grown } = await stop();
      expect(head).to.match(/^HTTP\/1\.1 [24]00 /);
      expect(bytes).to.be.at.least(kind.bytes ?? LARGE_BYTES);
      // The other account's own answer waits too.
      expect(waiting).to.be.at.most(SHARE_BYTES + (kind.bytes ?? LARGE_BYTES) + 65_536);
      expect(grown).to.be.below(SHARE_BYTES + GARBAGE_BYTES);
    });
  }
});

async function residentBytes(pid: number): Promise<number> {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
