import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { expect } from 'chai';
import { findAdapter, registerAdapter } from '../../../core/catalog/adapters';
import { AdapterFault } from '../../../core/catalog/guarded-adapter';
import type { UpstreamAdapter } from '../../../core/catalog/upstream';
import { sampleAdapter } from '../../support/catalog-samples';

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

  it('may return the headers directly or as a promise', async () => {
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

  it('is rejected at registration when `sign` or `framing` is not a function', () => {
    const refused: readonly (readonly [object, RegExp])[] = [
      [{ sign: 'x' }, /has sign, and not as a function/],
      [{ framing: { mediaType: 'x' } }, /has a `framing` without the function `open`/],
    ];
    for (const [wrong, message] of refused)
      expect(() => registerAdapter({ ...sampleAdapter('wrong', ['chat']), ...wrong })).to.throw(message);
  });

  it('fails the attempt when `sign` does not resolve within 10 s', async () => {
    const clock = mock.timers;
    clock.enable({ apis: ['setTimeout'] });
    const late = rejected(signing(() => new Promise(() => undefined)));
    clock.tick(10_000);
    expect(await late).to.be.instanceOf(AdapterFault);
    clock.reset();
  });
});
