import type { JWT } from 'google-auth-library';
import { type BodyEdit, defineAdapter } from '../../core/catalog/upstream';
import { parseJson } from '../../core/parse-json';
import { asObject, asText } from './json';
import messages from './messages';
import { forwardedHeaders } from './standard-request';

const PLACE = {
  type: 'string',
  pattern: '^[a-z0-9:.-]+$',
  'x-expected': 'lower case letters, digits and hyphens',
} as const;

/** The Messages protocol as Google's Vertex AI serves Anthropic's models: rawPredict and streamRawPredict. */
export default defineAdapter({
  contract: 'upstream/2',
  name: 'vertex',
  protocols: ['messages'],
  schema: {
    type: 'object',
    additionalProperties: false,
    required: ['project', 'region'],
    properties: {
      project: { ...PLACE, description: 'The id of the project in Google Cloud.' },
      region: { ...PLACE, description: 'The region, such as `us-east5`, or `global`.' },
    },
  },

  request(call, { project, region }) {
    const model = encodeURIComponent(call.model).replaceAll('%40', '@');
    const place = `/v1/projects/${project}/locations/${region}/publishers/anthropic/models/${model}`;
    const edits: BodyEdit[] = [
      { member: 'priority', drop: true },
      { member: 'model', drop: true },
      { member: 'anthropic_version', set: '"vertex-2023-10-16"' },
    ];
    if (call.members.get('stream') === 'null') edits.push({ member: 'stream', drop: true });
    return {
      path: `${place}:${call.stream ? 'streamRawPredict' : 'rawPredict'}`,
      headers: forwardedHeaders(call),
      edits,
    };
  },

  authorize: (credential) => (isKey(credential) ? {} : { authorization: `Bearer ${credential}` }),

  async sign(_request, credential): Promise<Record<string, string>> {
    if (!isKey(credential)) return {};
    const client = await clientOf(credential);
    const authorization = (await client.getRequestHeaders()).get('authorization');
    if (authorization === null) throw new Error('no token came of the key of the service account');
    return { authorization };
  },

  judge: messages.judge,
  ...(messages.continuation !== undefined && { continuation: messages.continuation }),
  readEvent: messages.readEvent,
  readBody: messages.readBody,
});

/** The key of a service account, as Google gives it; otherwise it is an access token. */
function isKey(credential: string): boolean {
  return credential.startsWith('{');
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Each keeps its token until shortly before it expires. */
const CLIENTS = new Map<string, Promise<JWT>>();
const MOST_CLIENTS = 100;

function clientOf(credential: string): Promise<JWT> {
  const known = CLIENTS.get(credential);
  if (known !== undefined) return known;
  if (CLIENTS.size >= MOST_CLIENTS) CLIENTS.clear();
  const opened = openClient(credential);
  CLIENTS.set(credential, opened);
  opened.catch(() => CLIENTS.delete(credential));
  return opened;
}

/** Signs its tokens itself, so that no call waits for Google's token server. */
async function openClient(credential: string): Promise<JWT> {
  const key = asObject(parseJson(credential)) ?? {};
  const [email, pem] = [asText(key['client_email']), asText(key['private_key'])];
  if (email === '' || pem === '') throw new Error('the credential is no key of a service account of Google');
  const { JWT } = await import('google-auth-library');
  const client = new JWT({ email, key: pem, keyId: asText(key['private_key_id']), scopes: [SCOPE] });
  client.useJWTAccessWithScope = true;
  return client;
}
