import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const LARGEST_BYTES = 20_971_520;

/** Returns the body of a call with exactly so many bytes. */
function bodyOf(bytes: number): Buffer {
  const frame = JSON.stringify(ask({ messages: [{ role: 'user', content: '' }], model: MODEL }));
  const at = frame.indexOf('"content":"') + '"content":"'.length;
  return Buffer.concat([
    Buffer.from(frame.slice(0, at)),
    Buffer.alloc(bytes - frame.length, 'a'),
    Buffer.from(frame.slice(at)),
  ]);
}

describe('Large bodies', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    const models = { [MODEL]: { context: 10_000_000 } };
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url, models } } });
    ({ key } = await gateway.newCustomer('100000'));
    upstream.always(messagesAnswer());
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  it('of 20 MB are accepted, and one byte more gets 413, announced or in chunks', async () => {
    const largest = await gateway.call('/v1/messages', { key, body: bodyOf(LARGEST_BYTES) });
    expect(largest.status, largest.text).to.equal(200);
    expect(upstream.calls[0]?.body).to.have.length(LARGEST_BYTES);
    const oneMore = bodyOf(LARGEST_BYTES + 1);
    expect((await gateway.call('/v1/messages', { key, body: oneMore })).status).to.equal(413);
    const chunked = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: new Blob([new Uint8Array(oneMore)]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(chunked.status).to.equal(413);
    expect(upstream.calls).to.have.length(1);
  });

  it('of 20 MB are served or get 503, in bounded memory, if 50 come at once, and small calls are served meanwhile', async () => {
    const body = bodyOf(LARGEST_BYTES);
    const before = await residentBytes(gateway.pid);
    let largest = 0;
    const watching = setInterval(() => {
      void residentBytes(gateway.pid).then((bytes) => {
        largest = Math.max(largest, bytes);
      });
    }, 50);
    try {
      const statuses = Promise.all(Array.from({ length: 50 }, () => statusOfPost(gateway.url, key, body)));
      const small = await gateway.call('/v1/messages', { key, body: ask() });
      expect(small.status, small.text).to.be.oneOf([200, 503]);
      const counts = new Map<number, number>();
      for (const status of await statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
      expect(
        [...counts.keys()].every((status) => status === 200 || status === 503),
        [...counts].join(' '),
      ).to.equal(true);
      // As many bodies as fit into the account's share are served. None is refused halfway for a later one.
      expect(counts.get(200) ?? 0).to.be.at.least(3);
      expect(largest - before).to.be.below(500 * 1024 * 1024);
    } finally {
      clearInterval(watching);
    }
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
  });

  describe('that arrive slowly', () => {
    const ANNOUNCED = `content-length: ${LARGEST_BYTES}`;
    const begun: ReturnType<typeof beginPost>[] = [];
    const begin = (of: string, framing = ANNOUNCED, sent = '{') => {
      const post = beginPost(gateway.url, of, framing, sent);
      begun.push(post);
      return post;
    };
    afterEach(() => {
      for (const { socket } of begun.splice(0)) socket.destroy();
    });
    const answered = (post: ReturnType<typeof beginPost>) => until('an answer', () => post.status());

    it('leave room for other customers: 13 of one account do not stop 100 KB of another', async () => {
      const { key: greedy } = await gateway.newCustomer('100');
      const posts = Array.from({ length: 13 }, () => begin(greedy));
      await until('ten refusals', () => posts.filter((post) => post.status() === 503).length === 10 || undefined);
      const other = await gateway.call('/v1/messages', { key, body: bodyOf(100_000) });
      expect(other.status, other.text).to.equal(200);
      const own = await gateway.call('/v1/messages', { key: greedy, body: bodyOf(100_000) });
      expect(own.status, own.text).to.equal(200);
      expect(posts.filter((post) => post.status() === undefined)).to.have.length(3);
    });

    it('from a customer without money get 402 before they have arrived', async () => {
      const { key: penniless } = await gateway.newCustomer('0');
      expect(await answered(begin(penniless))).to.equal(402);
      expect(await answered(begin(penniless, 'content-length: 65537', ''))).to.equal(402);
    });

    it('are refused before they have arrived if the key has spent its limit or the account is frozen', async () => {
      const limited = await gateway.newCustomer('10', { balanceLimit: '0' });
      expect(await answered(begin(limited.key))).to.equal(402);
      const frozen = await gateway.newCustomer('10');
      await gateway.admin('POST', `/admin/v1/accounts/${frozen.accountId}/freeze`, {});
      expect(await answered(begin(frozen.key))).to.equal(403);
    });

    it('in chunks get 402 from a customer without money only after 64 KB', async () => {
      const { key: penniless } = await gateway.newCustomer('0');
      const start = chunkOf(`{"x":"${'x'.repeat(60_000)}`);
      const post = begin(penniless, 'transfer-encoding: chunked', start);
      // This call is answered after the chunk has arrived.
      expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
      expect(post.status()).to.equal(undefined);
      post.socket.write(chunkOf('x'.repeat(10_000)));
      expect(await answered(post)).to.equal(402);
    });

    it('in chunks are accepted whole from a customer with money', async () => {
      const body = bodyOf(1_000_000).toString();
      const post = begin(key, 'transfer-encoding: chunked', `${chunkOf(body)}0\r\n\r\n`);
      expect(await answered(post)).to.equal(200);
    });
  });
});

/** Sends the head and the first bytes of a POST. `status` returns the status once the answer has come. */
function beginPost(url: string, key: string, framing: string, sent: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  const head = [
    'POST /v1/messages HTTP/1.1',
    'Host: x',
    `x-api-key: ${key}`,
    'content-type: application/json',
    framing,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${sent}`);
  return { socket, status: () => (text === '' ? undefined : Number(text.slice(9, 12))) };
}

/** Sends a POST and returns the status, which may come while the body is still being sent. */
function statusOfPost(url: string, key: string, body: Buffer): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    let text = '';
    const answered = (): void => {
      resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0));
      socket.destroy();
    };
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.includes('\r\n\r\n')) answered();
    });
    socket.on('error', () => undefined);
    socket.on('close', answered);
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
  });
}

function chunkOf(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

async function residentBytes(pid: number): Promise<number> {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
