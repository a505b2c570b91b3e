import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { GatewayError } from '../../../core/base/errors';
import { missingTag, parseTags, tagsInHead, tagsText, tagValue } from '../../../core/calls/tags';

const hashed = (text: string) => `hash:${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
const NOBODY = { agent: undefined, end_user: undefined, session: undefined };

describe('The tags of a call', () => {
  const long = 'x'.repeat(65);
  const read: readonly [header: string, tags: Record<string, string>][] = [
    ['project=alpha,customer=4711', { project: 'alpha', customer: '4711' }],
    ['  project=alpha ,\tcustomer=4711 ', { project: 'alpha', customer: '4711' }],
    ['a=1,b=2,c=3,d=4', { a: '1', b: '2', c: '3', d: '4' }],
    [`${'n'.repeat(32)}=A.b_c:d-9`, { ['n'.repeat(32)]: 'A.b_c:d-9' }],
    ['constructor=1,a_1=x=y', { constructor: '1', a_1: hashed('x=y') }],
    [`customer=${long}`, { customer: hashed(long) }],
    ['customer=ana@acme.example', { customer: hashed('ana@acme.example') }],
    [`customer=${hashed('x')}`, { customer: hashed('x') }],
  ];
  for (const [header, tags] of read)
    it(`are read from ${JSON.stringify(header.slice(0, 60))}`, () =>
      assert.deepEqual(tagsInHead({ 'x-svc-tags': header }), tags));

  it('are hashed by the bytes that the client sent, which Node reads as Latin-1', () => {
    const sent = Buffer.from('customer=Zoë', 'utf8').toString('latin1');
    assert.deepEqual(tagsInHead({ 'x-svc-tags': sent }), { customer: hashed('Zoë') });
  });

  const refused: readonly [header: string, why: RegExp][] = [
    ['', /expected tags such as/],
    ['project', /expected tags such as/],
    ['project=alpha,', /expected tags such as/],
    ['=alpha', /expected a name/],
    ['Project=alpha', /expected a name/],
    ['1a=alpha', /expected a name/],
    ['pro-ject=alpha', /expected a name/],
    ['project =alpha', /expected a name/],
    [`${'n'.repeat(33)}=1`, /expected a name/],
    ['project=', /has no value/],
    ['project=a,project=a', /given twice/],
    ['a=1,b=2,c=3,d=4,e=5', /at most 4/],
    ['session=s', /sets the tag session/],
    ['agent=a', /sets the tag agent/],
    ['end_user=u', /sets the tag end_user/],
  ];
  for (const [header, why] of refused)
    it(`are refused with the name of the header if it is ${JSON.stringify(header.slice(0, 60))}`, () =>
      assert.throws(
        () => parseTags(header, 'x-svc-tags'),
        (error) =>
          error instanceof GatewayError &&
          error.code === 'INVALID_FIELD' &&
          error.options.param === 'x-svc-tags' &&
          why.test(error.message),
      ));

  it('are one sorted text for the ledger, and nothing without tags', () => {
    const tags = { project: 'alpha', customer: '4711' };
    const text = tagsText(tags, { agent: 'a1', end_user: 'u', session: 's' });
    assert.equal(text, 'agent=a1 customer=4711 end_user=u project=alpha session=s');
    assert.equal(tagsText(undefined, NOBODY), undefined);
  });

  it('have values that look like ids, or hashes that stay as they are', () => {
    assert.equal(tagValue('A.b_c:d-9'), 'A.b_c:d-9');
    assert.equal(tagValue('two words'), hashed('two words'));
    assert.equal(tagValue(tagValue('two words')), hashed('two words'));
  });

  it('lack the first required name that no tag has', () => {
    assert.equal(missingTag(undefined, undefined), undefined);
    assert.equal(missingTag(['customer', 'session'], 'customer=1 session=s'), undefined);
    assert.match(missingTag(['customer', 'project'], 'customer=1')?.message ?? '', /requires the tag project/);
    assert.match(missingTag(['user'], 'end_user=user')?.message ?? '', /requires the tag user/);
    assert.match(missingTag(['end_user'], undefined)?.message ?? '', /end_user; send metadata.user_id/);
  });
});
