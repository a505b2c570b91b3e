import assert from 'node:assert/strict';
import { GatewayError } from '../../../../core/base/errors';
import { readMetadata } from '../../../../plugins/sandbox/admission/metadata';

function refusalOf(metadata: unknown): string {
  try {
    readMetadata(metadata);
  } catch (error) {
    assert(error instanceof GatewayError && error.code === 'METADATA_INVALID', String(error));
    return error.message;
  }
  return 'accepted';
}

/** Returns the shortest time of several runs, so that other processes do not matter. */
function fastestMs(work: () => void): number {
  const runs = Array.from({ length: 7 }, () => {
    const startedMs = performance.now();
    work();
    return performance.now() - startedMs;
  });
  return Math.min(...runs);
}

/** Makes as much text as metadata may hold, in texts of the maximum length. */
function full(pattern: string): object {
  const text = pattern.repeat(2_048).slice(0, 2_048);
  return Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`text${index}`, text]));
}

describe('the metadata of a sandbox', () => {
  for (const [what, text] of [
    ['a password in an address', 'see https://me:hush@db.example/x'],
    ['one in an address of another scheme', 'redis+tls://:hush@cache'],
    ['a token', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlLW9mLWl0'],
    ['a token behind a word', 'token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlLW9mLWl0'],
    ['an API key', 'sk-abcdefghijklmnop1234'],
    ['a bearer', 'Authorization: Bearer abcdefghijklmnopqrst'],
  ] as const) {
    it(`is refused because it looks like a secret if it contains ${what}`, () =>
      assert.match(refusalOf({ note: text }), /looks like a secret/));
  }

  for (const text of ['https://db.example:5432/x', 'mail me@example.com', 'a.b.c://x', 'eyJ.eyJ.eyJ', '12:30://@']) {
    it(`is accepted if it contains "${text}"`, () => assert.equal(refusalOf({ note: text }), 'accepted'));
  }

  it('has limits for the length of a text, the length of a name, and the number of values', () => {
    assert.equal(refusalOf({ note: 'x'.repeat(2_048) }), 'accepted');
    assert.match(refusalOf({ note: 'x'.repeat(2_049) }), /metadata\.note: has more than 2048 characters/);
    assert.equal(refusalOf({ ['n'.repeat(128)]: 1 }), 'accepted');
    assert.match(refusalOf({ ['n'.repeat(129)]: 1 }), /metadata: has a name of more than 128 characters/);
    assert.equal(refusalOf({ list: Array.from({ length: 255 }, () => 0) }), 'accepted');
    assert.match(refusalOf({ list: Array.from({ length: 256 }, () => 0) }), /metadata: has more than 256 values/);
    assert.match(refusalOf(Object.fromEntries(Array.from({ length: 9 }, (_, at) => [at, 'x'.repeat(2_000)]))), /16384/);
  });

  for (const pattern of [
    'a.',
    'a://a:',
    'a+',
    '-eyJ',
    'eyJaaaaaaaaaaaa.',
    'Bearer ',
    '-----BEGIN ',
    'sk-',
    'aB',
    'api_key.',
  ]) {
    it(`is read in linear time when it is full of "${pattern}"`, () => {
      const plainMs = fastestMs(() => refusalOf(full('word ')));
      const attackMs = fastestMs(() => refusalOf(full(pattern)));
      assert(attackMs < 2 + 20 * plainMs, `${attackMs} ms, and ${plainMs} ms for words`);
    });
  }
});
