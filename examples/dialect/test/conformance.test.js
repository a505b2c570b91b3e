// @ts-check
const { describe, it } = require('node:test');
const { dialectConformance } = require('tollgate/dialect-conformance');
const { adapter } = require('..');

/** @param {readonly object[]} all */
const events = (...all) => Buffer.from(all.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''));
const counted = { read: 120, again: 80, said: 30 };
const over = { kind: 'over', why: 'done', counted };
const usage = { input: 40, cacheRead: 80, output: 30 };

const checks = dialectConformance({
  adapter,
  settings: {}, // valid `adapterSettings`
  streams: [
    {
      name: 'words',
      bytes: events({ kind: 'words', words: 'Grüß ' }, { kind: 'words', words: 'Gott' }, over),
      text: 'Grüß Gott',
      usage,
      ends: 'end',
    },
    {
      name: 'tools',
      bytes: events({ kind: 'use', use: 'weather', ticket: 't1', form: { city: 'Łódź' } }, { ...over, why: 'tool' }),
      text: '',
      calls: [['weather', { city: 'Łódź' }]],
      usage,
      ends: 'tool_calls',
    },
    { name: 'trouble', bytes: events({ kind: 'trouble', trouble: 'Too hot.' }), text: '', usage: {}, ends: 'error' },
  ],
  bodies: [
    {
      name: 'words',
      bytes: Buffer.from(JSON.stringify({ words: 'Hi', why: 'done', counted })),
      text: 'Hi',
      usage,
      ends: 'end',
    },
  ],
  failures: [{ status: 503, body: { trouble: 'Too hot.' }, verdict: 'next', message: 'Too hot.' }],
});

describe('the adapter', () => {
  for (const { name, run } of checks) it(name, run);
});
