import { type BodyEdit, defineAdapter, type ModelCall } from '../../core/catalog/upstream';
import { authorizeAmazon, REGION, signForAmazon } from './amazon-signature';
import { EventStreamDecoder } from './event-stream';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders } from './standard-request';

/** The beta features in Amazon's documentation of Anthropic's models. Bedrock rejects a call with any other beta feature. */
const BETAS = [
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dev-full-thinking-2025-05-14',
  'effort-2025-11-24',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'token-efficient-tools-2025-02-19',
  'tool-examples-2025-10-29',
  'tool-search-tool-2025-10-19',
] as const;

/** The Messages protocol as Amazon Bedrock serves Anthropic's models: InvokeModel and InvokeModelWithResponseStream. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'bedrock',
  protocols: ['messages'],
  schema: {
    type: 'object',
    additionalProperties: false,
    required: ['region'],
    properties: {
      region: REGION,
      betas: {
        description:
          'Values of `anthropic-beta` that are forwarded; others are dropped. Default: those that Amazon documents.',
        type: 'array',
        items: { type: 'string', minLength: 1 },
        uniqueItems: true,
      },
    },
  },

  request(call, { betas = BETAS }) {
    const operation = call.stream ? 'invoke-with-response-stream' : 'invoke';
    return {
      path: `/model/${encodeURIComponent(call.model)}/${operation}`,
      headers: { ...forwardedHeaders(call), accept: 'application/json' },
      edits: [
        ...['priority', 'model', 'stream'].map((member): BodyEdit => ({ member, drop: true })),
        { member: 'anthropic_version', set: '"bedrock-2023-05-31"' },
        ...betasOf(call, betas),
      ],
    };
  },

  authorize: authorizeAmazon,

  sign: (request, credential, { region }) => signForAmazon(request, credential, region),

  framing: { mediaType: 'application/vnd.amazon.eventstream', open: () => new EventStreamDecoder() },

  // Status 424 reports a fault of the model's own servers, so another upstream may succeed.
  judge: (failure) => (failure.status === 424 ? 'next' : judgeFailure(failure)),
});

/** Writes the beta features into the body, where Bedrock expects them. */
function betasOf({ headers }: ModelCall, known: readonly string[]): BodyEdit[] {
  const asked = [headers['anthropic-beta'], headers['protoa-beta']].flatMap((each) => each?.split(',') ?? []);
  const sent = asked.map((each) => each.trim()).filter((each) => known.includes(each));
  return sent.length === 0 ? [] : [{ member: 'anthropic_beta', set: JSON.stringify([...new Set(sent)]) }];
}
