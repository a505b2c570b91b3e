import type { JWT } from 'google-auth-library';
import { asObject, asText } from '../../core/base/json-values';
import { parseJson } from '../../core/base/parse-json';
import type { OpenedHost } from '../../core/catalog/upstream';

/** The hosts of Google's Cloud Storage. Vertex AI reads their addresses with the credential of the call, as it reads `gs://` addresses. */
const SIGNED_BY = ['X-Goog-Signature', 'Signature'];
export const CLOUD_STORAGE: readonly OpenedHost[] = [
  { host: 'storage.googleapis.com', signedBy: SIGNED_BY },
  { host: 'commondatastorage.googleapis.com', signedBy: SIGNED_BY },
  { host: 'storage.cloud.google.com', signedBy: SIGNED_BY },
  { host: 'www.googleapis.com' },
];

/** The suffix of the host names of Vertex AI, which serves Chat too. */
export const VERTEX_HOST = 'aiplatform.googleapis.com';

/** The settings that locate a model in Google Cloud. */
export const GOOGLE_PLACE = {
  type: 'object',
  additionalProperties: false,
  required: ['project', 'region'],
  properties: {
    project: { ...place(), description: 'The id of the project in Google Cloud.' },
    region: { ...place(), description: 'The region, such as `us-east5`, or `global`.' },
  },
} as const;

function place() {
  return { type: 'string', pattern: '^[a-z0-9:.-]+$', 'x-expected': 'lower case letters, digits and hyphens' } as const;
}

/** Returns the path of a Vertex AI model, without the method at its end. */
export function googleModel(
  { project, region }: { readonly project: string; readonly region: string },
  publisher: 'anthropic' | 'google',
  model: string,
): string {
  const name = encodeURIComponent(model).replaceAll('%40', '@');
  return `/v1/projects/${project}/locations/${region}/publishers/${publisher}/models/${name}`;
}

export function authorizeGoogle(credential: string): Record<string, string> {
  return isKey(credential) ? {} : { authorization: `Bearer ${credential}` };
}

/** Returns the `authorization` header. For a service account's key, the header has a token made from the key. */
export async function signForGoogle(credential: string): Promise<Record<string, string>> {
  if (!isKey(credential)) return {};
  const client = await clientOf(credential);
  const authorization = (await client.getRequestHeaders()).get('authorization');
  if (authorization === null) throw new Error('Google returned no access token for the key of the service account');
  return { authorization };
}

/** Returns whether the credential is a service account's key in Google's JSON form. Every other credential is an access token. */
function isKey(credential: string): boolean {
  return credential.startsWith('{');
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** The clients for Google's access tokens, by credential. Each client keeps its token until shortly before the token expires. */
const CLIENTS = new Map<string, Promise<JWT>>();
const MAX_CLIENTS = 100;

function clientOf(credential: string): Promise<JWT> {
  const known = CLIENTS.get(credential);
  if (known !== undefined) return known;
  if (CLIENTS.size >= MAX_CLIENTS) CLIENTS.clear();
  const opened = openClient(credential);
  CLIENTS.set(credential, opened);
  opened.catch(() => CLIENTS.delete(credential));
  return opened;
}

/** Opens a client that signs its tokens in this process, so that no call waits for Google's token server. */
async function openClient(credential: string): Promise<JWT> {
  const key = asObject(parseJson(credential)) ?? {};
  const [email, pem] = [asText(key['client_email']), asText(key['private_key'])];
  if (email === '' || pem === '') throw new Error('the credential is not the JSON key of a Google service account');
  const { JWT } = await import('google-auth-library');
  const client = new JWT({ email, key: pem, keyId: asText(key['private_key_id']), scopes: [SCOPE] });
  client.useJWTAccessWithScope = true;
  return client;
}
