import assert from 'node:assert/strict';
import { refusalOfKey } from '../../../core/accounts/check-access';
import type { KeyAccess } from '../../../core/ledger/key-access';

const AT_MS = Date.parse('2027-01-01T00:00:00Z');
const shown = { hash: 'current', address: '192.0.2.1' };
const secrets = { current: 'current', previous: 'previous', previousUntilMs: AT_MS };

function refused(access: KeyAccess, by: Partial<typeof shown> = {}, nowMs = AT_MS) {
  const refusal = refusalOfKey(access, { ...shown, ...by }, nowMs);
  return refusal && [refusal.status, refusal.code, refusal.message];
}

describe('an API key that a client sends', () => {
  it('is refused from the millisecond at which it expires', () => {
    assert.equal(refused({ expiresAtMs: AT_MS }, {}, AT_MS - 1), undefined);
    const expired = [401, 'API_KEY_EXPIRED', 'The API key expired at 2027-01-01T00:00:00.000Z. Use a valid key.'];
    assert.deepEqual(refused({ expiresAtMs: AT_MS }), expired);
  });

  it('is refused like an unknown one from the moment at which nobody confirms its member any more', () => {
    assert.equal(refused({ memberUntilMs: AT_MS }, {}, AT_MS - 1), undefined);
    assert.equal(refused({ memberUntilMs: AT_MS })?.[1], 'INVALID_API_KEY');
  });

  it("is refused if the client's address is outside the key's ranges, and the error names the address", () => {
    const access = { addresses: ['203.0.113.0/24', '2001:db8::/32'] };
    assert.equal(refused(access, { address: '203.0.113.9' }), undefined);
    assert.equal(refused(access, { address: '::ffff:203.0.113.9' }), undefined);
    assert.deepEqual(refused(access), [403, 'ADDRESS_NOT_ALLOWED', 'This key may not be used from 192.0.2.1.']);
    assert.equal(refused(access, { address: '' })?.[1], 'ADDRESS_NOT_ALLOWED');
  });

  it('is accepted with its current secret, and with the previous one until its grace period ends', () => {
    assert.equal(refused({ secrets }), undefined);
    assert.equal(refused({ secrets }, { hash: 'previous' }, AT_MS - 1), undefined);
    const replaced =
      'This secret of the API key was replaced, and it expired at 2027-01-01T00:00:00.000Z. Use a valid key.';
    assert.deepEqual(refused({ secrets }, { hash: 'previous' }), [401, 'API_KEY_EXPIRED', replaced]);
    assert.equal(refused({ secrets }, { hash: 'one before that' }, AT_MS - 1)?.[1], 'INVALID_API_KEY');
  });

  it('is refused once the key has expired, even within the grace period of its previous secret', () => {
    const access = { expiresAtMs: AT_MS, secrets: { ...secrets, previousUntilMs: AT_MS + 1 } };
    assert.equal(refused(access, { hash: 'previous' })?.[1], 'API_KEY_EXPIRED');
  });
});
