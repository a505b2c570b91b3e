import { defineAdapter } from '../../core/catalog/upstream';
import { UNKNOWN_USAGE, type Usage, usageOf } from '../../core/catalog/usage';
import { ADDRESS_SCHEMA, addressOf, credentialHeader } from './address';
import { asCount, asObject, asText, type JsonObject } from './json';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';
import { unknownNumbers } from './unknown-numbers';

/** The Embeddings protocol. Answers are never streamed and have no output tokens. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'embeddings',
  protocols: ['embeddings'],
  schema: ADDRESS_SCHEMA,

  request: (call, settings) => ({
    path: addressOf(call, settings, '/v1/embeddings'),
    headers: Object.assign(forwardedHeaders(call), settings.headers),
    edits: standardEdits(call),
  }),

  authorize: (credential, settings) => credentialHeader(credential, settings, 'bearer'),

  judge: judgeFailure,

  readEvent: () => ({}),

  readBody(body) {
    const answer = asObject(body) ?? {};
    const { error } = answer;
    if (error !== undefined && error !== null && error !== '')
      return { usage: UNKNOWN_USAGE, contentBytes: 0, error: { body } };
    return { usage: readUsage(answer), contentBytes: 0 };
  },
});

/** Known numbers of a usage report: charged, or sums of charged numbers. */
const KNOWN: ReadonlySet<string> = new Set(['prompt_tokens', 'total_tokens']);

function readUsage(answer: JsonObject): Usage {
  const usage = asObject(answer['usage']);
  const input = asCount(usage?.['prompt_tokens']);
  if (usage === undefined || input === undefined) return UNKNOWN_USAGE;
  const [pass = { counts: new Map() }] = usageOf({ input, output: 0 }).passes;
  const unknown = unknownNumbers(usage, KNOWN);
  const passes = [{ ...pass, model: asText(answer['model']) || undefined }];
  return unknown === undefined ? { passes } : { passes, unknown };
}
