import assert from 'node:assert/strict';
import { hashPassword, verifyPassword } from '../../../core/sign-in/password';
import { rejection } from '../../support/rejection';

describe("a user's password", () => {
  it('is verified against its stored form, which does not reveal it', async () => {
    const stored = await hashPassword('correct horse battery');
    assert.match(stored, /^\$scrypt\$ln=15,r=8,p=3\$/);
    assert.ok(!stored.includes('horse'));
    assert.equal(await verifyPassword('correct horse battery', stored), true);
    assert.equal(await verifyPassword('correct horse batterz', stored), false);
  });

  it('is stored differently each time', async () => {
    assert.notEqual(await hashPassword('the same words'), await hashPassword('the same words'));
  });

  it('is accepted in every Unicode composition of its letters', async () => {
    assert.equal(await verifyPassword('caf\u00e9 au lait', await hashPassword('cafe\u0301 au lait')), true);
  });

  it('is wrong for every account whose stored password is missing or unreadable', async () => {
    assert.equal(await verifyPassword('anything', undefined), false);
    assert.equal(await verifyPassword('', ''), false);
    assert.equal(await verifyPassword('x', '$scrypt$ln=15,r=8,p=3$$'), false);
  });

  it('is verified even if its stored form has other cost settings', async () => {
    const stored = '$scrypt$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$';
    const { scryptSync } = await import('node:crypto');
    const hash = scryptSync('older', Buffer.alloc(16), 32, { N: 16, r: 8, p: 1 }).toString('base64').replace('=', '');
    assert.equal(await verifyPassword('older', stored + hash), true);
  });

  it('is not checked if too many checks already wait, because they would occupy every thread', async () => {
    const cheap = `$scrypt$ln=10,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
    const all = Array.from({ length: 60 }, () => verifyPassword('x', cheap).catch((error: unknown) => error));
    const answers = await Promise.all(all);
    assert.equal(answers.filter((answer) => answer === false).length, 50);
    assert.equal(await verifyPassword('x', cheap), false);
    assert.equal(
      (await rejection(Promise.reject(answers.at(-1)))).message,
      'The gateway is at its capacity. Retry later.',
    );
  });
});
