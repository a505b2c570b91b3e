import { createHash, createHmac } from 'node:crypto';
import { type BodyEdit, defineAdapter, type ModelCall } from '../../core/catalog/upstream';
import { parseJson } from '../../core/parse-json';
import { EventStreamDecoder } from './event-stream';
import { asObject, asText } from './json';
import { judgeFailure } from './judge-failure';
import messages from './messages';
import { forwardedHeaders } from './standard-request';

/** Betas that Amazon's document of Anthropic's models has; it refuses a call with any other. */
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
  contract: 'upstream/2',
  name: 'bedrock',
  protocols: ['messages'],
  schema: {
    type: 'object',
    additionalProperties: false,
    required: ['region'],
    properties: {
      region: {
        description: 'The region of the address, such as `us-east-1`.',
        type: 'string',
        pattern: '^[a-z0-9-]+$',
      },
      betas: {
        description:
          'Values of `anthropic-beta` that are sent on; others are left out. Default: those that Amazon documents.',
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

  authorize: (credential) => (isApiKey(credential) ? { authorization: `Bearer ${credential}` } : {}),

  async sign({ method, url, headers, bodySha256 }, credential, { region }) {
    if (isApiKey(credential)) return {};
    const { SignatureV4 } = await import('@smithy/signature-v4');
    const signer = new SignatureV4({ service: 'bedrock', region, credentials: readKeys(credential), sha256: Sha256 });
    const signed = await signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: { ...headers, host: url.host, 'x-amz-content-sha256': bodySha256 },
    });
    const { host: _setByTheConnection, ...rest } = signed.headers;
    return rest;
  },

  framing: { mediaType: 'application/vnd.amazon.eventstream', open: () => new EventStreamDecoder() },

  // 424 is a fault of the model's own servers.
  judge: (failure) => (failure.status === 424 ? 'next' : judgeFailure(failure)),

  ...(messages.continuation !== undefined && { continuation: messages.continuation }),
  readEvent: messages.readEvent,
  readBody: messages.readBody,
});

/** Betas stand in the body here. */
function betasOf({ headers }: ModelCall, known: readonly string[]): BodyEdit[] {
  const asked = [headers['anthropic-beta'], headers['protoa-beta']].flatMap((each) => each?.split(',') ?? []);
  const sent = asked.map((each) => each.trim()).filter((each) => known.includes(each));
  return sent.length === 0 ? [] : [{ member: 'anthropic_beta', set: JSON.stringify([...new Set(sent)]) }];
}

interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Amazon's keys for Bedrock alone are shown as they are; neither they nor access keys have the marks of the other. */
function isApiKey(credential: string): boolean {
  return !credential.startsWith('{') && !credential.includes(':');
}

/** `ID:SECRET` or `ID:SECRET:TOKEN`, or the JSON that programs print for `credential_process`. */
function readKeys(credential: string): Keys {
  const json = credential.startsWith('{') ? asObject(parseJson(credential)) : undefined;
  const [id = '', secret = '', token = ''] =
    json === undefined
      ? credential.split(':')
      : [json['AccessKeyId'], json['SecretAccessKey'], json['SessionToken']].map(asText);
  if (id === '' || secret === '')
    throw new Error('the credential is neither ID:SECRET nor JSON with AccessKeyId and SecretAccessKey');
  return { accessKeyId: id, secretAccessKey: secret, ...(token !== '' && { sessionToken: token }) };
}

/** SHA-256, and with a key its HMAC, by Node instead of in JavaScript. */
class Sha256 {
  readonly #hash;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(key));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('one hash is made for each text');
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
