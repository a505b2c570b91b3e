// @ts-check
/// <reference path="./fields.d.ts" />
// Checks whether a call contains a word that must not leave the company.
const { declareErrors, fail } = require('tollgate/errors');
const { manifest } = require('tollgate/manifest');
const { definePolicy } = require('tollgate/policy');

const errors = declareErrors({
  WORD_REFUSED: {
    status: 403,
    type: 'permission_error',
    retryable: false,
    summary: 'The call names a word that this gateway does not let out.',
  },
});

const policy = definePolicy({
  contract: 'policy/1',
  name: 'example-policy', // under `policies:` and in the pipelines of gateway.config.yml
  summary: 'Does it name a word that is not to leave?',
  schema: {
    type: 'object',
    properties: {
      words: {
        description: 'What is looked for.',
        type: 'array',
        items: { type: 'string', minLength: 1 },
        default: [],
      },
      refuse: { description: 'Whether such a call is refused.', type: 'boolean', default: true },
    },
  },
  needs: ['request'], // fields of the call that earlier steps must provide
  provides: ['wordsFound'], // fields for later steps; fields.d.ts declares this one
  prepare: ({ words, refuse }, gateway) => {
    // Runs once per configuration and pipeline: prepare here. Open no timer or socket, because a reload would not close it.
    const wanted = words.map((word) => word.toLowerCase());
    return (call) => {
      const body = call.request.read();
      // A body that was not searched must not leave either.
      if (body === undefined && refuse)
        throw fail('BODY_TOO_LARGE', { message: 'It is too large to be looked through.' });
      const text = JSON.stringify(body ?? '').toLowerCase();
      const wordsFound = wanted.filter((word) => text.includes(word));
      if (wordsFound.length === 0) return { wordsFound };
      gateway.log.info({ requestId: call.id, words: wordsFound.length }, 'a call names words that are not to leave');
      if (refuse) throw errors.fail('WORD_REFUSED', { details: { words: wordsFound } });
      return { wordsFound };
    };
  },
});

module.exports = manifest({ policies: [policy] });
