const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const [policy] = require('..').tollgate.policies;

const gateway = { log: { info: () => undefined } };

/** Runs the step of a pipeline with these settings on a call with this body. */
function ask(settings, body) {
  const step = policy.prepare({ words: [], refuse: true, ...settings }, gateway);
  return step({ id: 'req_1', request: { read: () => body } });
}

const saying = (content) => ({ messages: [{ role: 'user', content }] });

describe('the policy', () => {
  it('lets a call pass that names none of the words', () => {
    assert.deepEqual(ask({ words: ['Falcon'] }, saying('Hello')), { wordsFound: [] });
  });

  it('refuses a call that names one, however it is written', () => {
    assert.throws(() => ask({ words: ['Falcon'] }, saying('the FALCON flies')), {
      code: 'WORD_REFUSED',
      status: 403,
      options: { details: { words: ['falcon'] } },
    });
  });

  it('only tells the next policies of it where it is told not to refuse', () => {
    assert.deepEqual(ask({ words: ['Falcon'], refuse: false }, saying('falcon')), { wordsFound: ['falcon'] });
  });

  it('refuses a call that is too large to be looked through', () => {
    assert.throws(() => ask({ words: ['Falcon'] }, undefined), { code: 'BODY_TOO_LARGE' });
  });
});
