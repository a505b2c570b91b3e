import { createHash, createHmac } from 'node:crypto';
import { asObject, asText } from '../../core/base/json-values';
import { parseJson } from '../../core/base/parse-json';
import type { UnsignedRequest } from '../../core/catalog/upstream';

/** The region setting of adapters for Amazon Bedrock. */
export const REGION = {
  description: 'The region of the address, such as `us-east-1`.',
  type: 'string',
  pattern: '^[a-z0-9-]+$',
} as const;

export function authorizeAmazon(credential: string): Record<string, string> {
  return isApiKey(credential) ? { authorization: `Bearer ${credential}` } : {};
}

/** Signs a request with access keys (Signature Version 4) if the credential is a pair of access keys. */
export async function signForAmazon(
  { method, url, headers, bodySha256 }: UnsignedRequest,
  credential: string,
  region: string,
): Promise<Record<string, string>> {
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
}

interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Returns whether the credential is an API key for Bedrock, which is sent as it is. Only access keys contain a colon or are JSON. */
function isApiKey(credential: string): boolean {
  return !credential.startsWith('{') && !credential.includes(':');
}

/** Reads `ID:SECRET`, `ID:SECRET:TOKEN`, or the JSON that programs print for `credential_process`. */
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

/** Computes SHA-256, or its HMAC if there is a key, with Node's native code instead of JavaScript. */
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
    throw new Error('this hash cannot be reset: create one for each text');
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
