import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { oncePerHead } from '../../../core/http/repeated-head';

describe('the value that a reader computes from the head of a request', () => {
  const HEAD = ['Host', 'api.example', 'x-api-key', 'one', 'Content-Length', '10'];
  let reads = 0;
  const read = oncePerHead(({ rawHeaders }) => {
    reads += 1;
    return { key: rawHeaders[3] };
  });
  const on = (socket: object, rawHeaders: readonly string[]) =>
    read({ socket, rawHeaders } as unknown as IncomingMessage);

  beforeEach(() => {
    reads = 0;
  });

  it('is reused for equal heads on one connection, whatever the length of the body', () => {
    const socket = {};
    expect(on(socket, HEAD)).to.equal(on(socket, HEAD.with(5, '2000')));
    expect(on(socket, HEAD)).to.deep.equal({ key: 'one' });
    expect(reads).to.equal(1);
  });

  for (const [what, head] of [
    ['another value', HEAD.with(3, 'two')],
    ['another name', HEAD.with(2, 'X-API-Key')],
    ['another order', ['x-api-key', 'one', 'Host', 'api.example', 'Content-Length', '10']],
    ['a header more', [...HEAD, 'x-api-key', 'two']],
    ['a header less', HEAD.slice(0, 4)],
  ] as const) {
    it(`is computed again for a head with ${what}`, () => {
      const socket = {};
      on(socket, HEAD);
      expect(on(socket, head)).to.deep.equal({ key: head[3] });
      expect(on(socket, HEAD)).to.deep.equal({ key: 'one' });
      expect(reads).to.equal(3);
    });
  }

  it('is not shared between connections or between readers', () => {
    const socket = {};
    on(socket, HEAD);
    on({}, HEAD);
    expect(reads).to.equal(2);
    const other = oncePerHead(() => ({ other: true }));
    expect(other({ socket, rawHeaders: HEAD } as unknown as IncomingMessage)).to.deep.equal({ other: true });
    expect(on(socket, HEAD)).to.deep.equal({ key: 'one' });
  });
});
