import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { expect } from 'chai';
import { findAdapter, registerAdapter } from '../../../core/catalog/adapters';
import { AdapterFault } from '../../../core/catalog/guarded-adapter';
import type { UpstreamAdapter, UpstreamAdapter1 } from '../../../core/catalog/upstream';
import { sampleAdapter } from '../../support/catalog-samples';

const COUNTS = {
  inputTokens: 3,
  outputTokens: 5,
  cacheReadTokens: undefined,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 7,
};

/** An adapter of the older contract, without reports. */
const BEFORE: UpstreamAdapter1 = {
  ...sampleAdapter('before', ['chat']),
  contract: 'upstream/1',
  readEvent: () => ({ content: true, contentBytes: 2, usage: COUNTS, finalUsage: true }),
  readBody: () => ({ usage: COUNTS, contentBytes: 9, error: { body: 'told' } }),
};

describe('an adapter of the contract upstream/1', () => {
  let forget: () => void;
  before(() => {
    forget = registerAdapter(BEFORE);
  });
  after(() => forget());

  const PASSES = [
    {
      counts: new Map([
        ['input', 3],
        ['output', 5],
        ['cacheWrite', 0],
        ['cacheWrite1h', 7],
      ]),
    },
  ];

  it('has its five counts converted to one pass; unknown counts stay unknown', () => {
    const note = findAdapter('before')?.readEvent({ name: undefined, data: 'x' });
    expect(note).to.deep.equal({ content: true, contentBytes: 2, finalUsage: true, usage: { passes: PASSES } });
  });

  it('keeps every other result that it reads from a whole answer', () => {
    const read = findAdapter('before')?.readBody({});
    expect(read).to.deep.equal({ contentBytes: 9, error: { body: 'told' }, usage: { passes: PASSES } });
  });
});

describe('an adapter that signs requests', () => {
  const REQUEST = { method: 'POST', url: new URL('https://acme.example/x'), headers: {}, bodySha256: '' };
  const signing = (sign: NonNullable<UpstreamAdapter['sign']>) => {
    const forget = registerAdapter({ ...sampleAdapter('signing', ['chat']), sign });
    const found = findAdapter('signing');
    forget();
    return found?.sign?.(REQUEST, 'secret', {});
  };
  const rejected = (work: unknown) =>
    Promise.resolve(work).then(
      () => assert.fail('it resolved'),
      (error: unknown) => error,
    );

  it('may return its headers directly or as a promise', async () => {
    expect(signing((_request, credential) => ({ 'x-signature': credential }))).to.deep.equal({
      'x-signature': 'secret',
    });
    expect(await signing(async ({ method }) => ({ 'x-method': method }))).to.deep.equal({ 'x-method': 'POST' });
  });

  it('fails the attempt when signing throws or rejects', async () => {
    const failing = (): never => {
      throw new Error('no key');
    };
    expect(() => signing(failing)).to.throw(AdapterFault);
    expect(await rejected(signing(async () => failing()))).to.be.instanceOf(AdapterFault);
  });

  it('is refused when `sign` or `framing` is not a function', () => {
    const refused: readonly (readonly [object, RegExp])[] = [
      [{ sign: 'x' }, /has sign, and not as a function/],
      [{ framing: { mediaType: 'x' } }, /has a `framing` without the function `open`/],
    ];
    for (const [wrong, message] of refused)
      expect(() => registerAdapter({ ...sampleAdapter('wrong', ['chat']), ...wrong })).to.throw(message);
  });

  it('fails the attempt when signing does not resolve within 10 s', async () => {
    const clock = mock.timers;
    clock.enable({ apis: ['setTimeout'] });
    const late = rejected(signing(() => new Promise(() => undefined)));
    clock.tick(10_000);
    expect(await late).to.be.instanceOf(AdapterFault);
    clock.reset();
  });
});
