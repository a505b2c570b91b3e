import assert from 'node:assert/strict';
import { AnswerStore } from '../../../core/calls/answer-store';

const answer = (bytes: number) => ({ status: 200, headers: [], body: Buffer.alloc(bytes) });
const keep = (store: AnswerStore, rid: string, bytes: number, account = 'own') =>
  store.begin(rid, account)(answer(bytes));

describe('the store of responses for repeated calls', () => {
  it('drops the oldest responses when a new one needs their space', () => {
    const store = new AnswerStore({ maxBytes: 10_000, maxAgeMs: 1_000 });
    for (const rid of ['one', 'two', 'three']) keep(store, rid, 3_000);
    assert.equal(store.find('one'), undefined);
    assert.equal(store.find('two')?.body.length, 3_000);
    assert.equal(store.find('three')?.body.length, 3_000);
    assert.ok(store.bytes > 6_000 && store.bytes <= 10_000);
  });

  it('takes the space for a new response from the account with the most stored bytes', () => {
    const store = new AnswerStore({ maxBytes: 10_000, maxAgeMs: 1_000 });
    keep(store, 'honest', 1_000);
    for (let count = 0; count < 50; count += 1) keep(store, `flood ${count}`, 1_000, 'other');
    assert.notEqual(store.find('honest'), undefined);
    assert.notEqual(store.find('flood 49'), undefined);
    assert.equal(store.find('flood 0'), undefined);
    keep(store, 'large', 9_000, 'other');
    assert.notEqual(store.find('honest'), undefined);
    assert.ok(store.bytes <= 10_000);
  });

  it('drops an expired response, and frees its space', () => {
    let now = 0;
    const store = new AnswerStore({ maxBytes: 10_000, maxAgeMs: 1_000 }, () => now);
    keep(store, 'one', 100);
    now = 999;
    assert.notEqual(store.find('one'), undefined);
    now = 1_000;
    assert.equal(store.find('one'), undefined);
    assert.equal(store.bytes, 0);
  });

  it('reports the end of a call only after it has stored the response', async () => {
    const store = new AnswerStore({ maxBytes: 10_000, maxAgeMs: 1_000 });
    assert.equal(store.whenEnded('one'), undefined);
    const end = store.begin('one', 'own');
    const found = store.whenEnded('one')?.then(() => store.find('one'));
    end(answer(100));
    assert.equal((await found)?.body.length, 100);
    assert.equal(store.whenEnded('one'), undefined);
  });

  it('reports the end of a call without a response, and accepts no response for the call afterwards', async () => {
    const store = new AnswerStore({ maxBytes: 10_000, maxAgeMs: 1_000 });
    const end = store.begin('one', 'own');
    const found = store.whenEnded('one')?.then(() => store.find('one'));
    end(undefined);
    end(answer(100));
    assert.equal(await found, undefined);
    assert.equal(store.find('one'), undefined);
  });
});
