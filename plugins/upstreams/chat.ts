import { asObject } from '../../core/base/json-values';
import { type BodyEdit, defineAdapter, type ModelCall } from '../../core/catalog/upstream';
import { ADDRESS_SCHEMA, credentialHeader, requestPath } from './address';
import { CLOUD_STORAGE, VERTEX_HOST } from './google-token';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** The adapter for the Chat protocol (chat completions), with the reasoning members that several vendors have added to it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'chat',
  protocols: ['chat'],
  opens: [{ host: 'api.openai.com' }, ...CLOUD_STORAGE.map((each) => ({ ...each, at: VERTEX_HOST }))],
  schema: {
    ...ADDRESS_SCHEMA,
    properties: {
      ...ADDRESS_SCHEMA.properties,
      limit: {
        description: 'The member in which calls of Chat say how long the answer may be. Default: as the call says it.',
        enum: LIMITS,
      },
      totalHas: {
        description:
          'What `total_tokens` has beyond prompt and completion, where the upstream does not report it as a count of its own.',
        enum: ['reasoning'],
      },
    },
  },

  request(call, settings) {
    const edits = standardEdits(call);
    if (settings.limit !== undefined) edits.push(...limitEdits(call, settings.limit));
    if (call.stream && call.streamUsage) edits.push(askForUsage(call));
    return {
      path: requestPath(call, settings, '/v1/chat/completions'),
      headers: Object.assign(forwardedHeaders(call), settings.headers),
      edits,
    };
  },

  authorize: (credential, settings) => credentialHeader(credential, settings, 'bearer'),

  judge: judgeFailure,
});

/** Writes the output limit into the one member that the upstream accepts: newer models reject `max_tokens`, older servers know no other member. */
function limitEdits({ members }: ModelCall, wanted: (typeof LIMITS)[number]): BodyEdit[] {
  const others = LIMITS.filter((member) => member !== wanted && members.has(member));
  if (others.length === 0) return [];
  const said = LIMITS.map((member) => members.get(member) ?? 'null').filter((limit) => limit !== 'null');
  const limit = said.length === 0 ? [] : [{ member: wanted, set: String(Math.min(...said.map(Number))) }];
  return [...others.map((member) => ({ member, drop: true as const })), ...limit];
}

/** Sets `include_usage`, because without it a stream ends without token counts and the call cannot be priced. */
function askForUsage(call: ModelCall): BodyEdit {
  const raw = call.members.get('stream_options');
  const options = raw === undefined ? undefined : asObject(JSON.parse(raw));
  return { member: 'stream_options', set: JSON.stringify({ ...options, include_usage: true }) };
}
