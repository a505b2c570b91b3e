import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { displayParts, hashApiKey, isApiKey, makeApiKey } from '../../../core/accounts/key-format';

describe('the format of an API key', () => {
  it('is `sk-svc-`, 40 random characters and a checksum of 6 characters', () => {
    const key = makeApiKey();
    assert.match(key, /^sk-svc-[0-9A-Za-z]{46}$/);
    assert.ok(isApiKey(key));
    assert.notEqual(key, makeApiKey());
  });

  it('ends with the CRC-32 of everything before it, in base62 and padded with zeros', () => {
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    for (let round = 0; round < 200; round += 1) {
      const key = makeApiKey();
      const value = [...key.slice(-6)].reduce((sum, character) => sum * 62 + digits.indexOf(character), 0);
      assert.equal(value, crc32(key.slice(0, -6)));
    }
  });

  it('never changes, so that a key once issued stays valid', () => {
    assert.ok(isApiKey('sk-svc-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd36XqiH'));
  });

  it('rejects a key in which one character is changed, at any position', () => {
    const key = makeApiKey();
    for (let place = 0; place < key.length; place += 1) {
      const other = key[place] === 'x' ? 'y' : 'x';
      assert.ok(!isApiKey(key.slice(0, place) + other + key.slice(place + 1)), `changed at ${place}`);
    }
  });

  it('rejects a key with spaces, invisible characters, another length or another prefix', () => {
    const key = makeApiKey();
    const rest = key.slice(7);
    for (const wrong of [
      '',
      ` ${key}`,
      `${key} `,
      `${key}\u200b`,
      `${key}\n`,
      key.slice(1),
      `${key}0`,
      `sk-abc-${rest}`,
    ]) {
      assert.ok(!isApiKey(wrong), JSON.stringify(wrong));
    }
  });

  it('has a SHA-256 hash for storage, and the first 11 and last 4 characters for display', () => {
    assert.equal(hashApiKey('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    assert.deepEqual(displayParts('sk-svc-0123456789'), { prefix: 'sk-svc-0123', suffix: '6789' });
  });
});
