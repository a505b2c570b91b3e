import { expect } from 'chai';
import { makeApiKey } from '../../core/accounts/key-format';
import { ask } from '../support/calls';
import { useGateway, useUpstream } from '../support/story';
import { messagesAnswer } from '../support/upstream';

const FOREIGN = 'sk-ant-api03-of-another-service';

describe('Several credentials in one request', () => {
  const upstream = useUpstream();
  let key: string;
  let otherKey: string;

  const gateway = useGateway(() => ({ upstreams: { acme: { url: upstream.url } } }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
    ({ key: otherKey } = await gateway.newCustomer('10'));
    upstream.always(messagesAnswer());
  });

  const accepted: [string, () => Record<string, string>][] = [
    ['a key as Bearer beside a foreign x-api-key', () => ({ authorization: `Bearer ${key}`, 'x-api-key': FOREIGN })],
    ['a key as x-api-key beside a foreign Bearer', () => ({ authorization: `Bearer ${FOREIGN}`, 'x-api-key': key })],
    ['a key as svc-key beside an empty x-api-key', () => ({ 'svc-key': key, 'x-api-key': '' })],
    ['a key as x-api-key beside Basic', () => ({ authorization: 'Basic dXNlcjpwYXNz', 'x-api-key': key })],
    ['the same key in two headers', () => ({ authorization: `Bearer ${key}`, 'x-api-key': key })],
  ];
  for (const [what, headers] of accepted) {
    it(`are accepted for a call and for reading the balance: ${what}`, async () => {
      const answer = await gateway.call('/v1/messages', { headers: headers(), body: ask() });
      expect(answer.status, answer.text).to.equal(200);
      expect(JSON.stringify(upstream.calls.at(-1)?.headers)).not.to.include(FOREIGN);
      expect((await gateway.call('/v1/balance', { method: 'GET', headers: headers() })).status).to.equal(200);
    });
  }

  const refused: [string, () => Record<string, string>][] = [
    ['two different keys', () => ({ authorization: `Bearer ${key}`, 'x-api-key': otherKey })],
    ['a malformed key beside a valid one', () => ({ authorization: 'Bearer sk-svc-123', 'x-api-key': key })],
    ['an unknown key beside a valid one', () => ({ authorization: `Bearer ${key}`, 'x-api-key': makeApiKey() })],
    ['a key without a scheme beside the same key', () => ({ authorization: key, 'x-api-key': key })],
    [
      'a key with an invisible space before it',
      () => ({ authorization: `Bearer ${key}`, 'x-api-key': `\u00a0${key}` }),
    ],
    ['an unknown key beside a foreign one', () => ({ authorization: `Bearer ${FOREIGN}`, 'x-api-key': makeApiKey() })],
    ['foreign credentials alone', () => ({ authorization: `Bearer ${FOREIGN}`, 'x-api-key': FOREIGN })],
  ];
  for (const [what, headers] of refused) {
    it(`are refused with 401 without calling an upstream: ${what}`, async () => {
      const before = upstream.calls.length;
      const answer = await gateway.call('/v1/messages', { headers: headers(), body: ask() });
      expect(answer.status, answer.text).to.equal(401);
      expect(answer.json.error.code).to.equal('INVALID_API_KEY');
      expect(upstream.calls).to.have.length(before);
    });
  }
});
