import { createHash, createHmac } from 'node:crypto';
import type { RecordedCall } from './upstream';

export interface AwsKeys {
  readonly id: string;
  readonly secret: string;
  readonly token?: string;
}

const PATTERN =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

/** Returns why Amazon would refuse a request; undefined if its signature is valid. It follows Amazon's document of Signature Version 4. */
export function wrongSignature(call: RecordedCall, { id, secret, token }: AwsKeys, region: string): string | undefined {
  const { headers } = call;
  const [, shownId, day = '', shownRegion, service = '', signed = '', signature] =
    PATTERN.exec(headers.authorization ?? '') ?? [];
  if (shownId !== id) return `the credential is ${shownId}`;
  if (shownRegion !== region || service !== 'bedrock') return `the scope is ${shownRegion}/${service}`;
  if (headers['x-amz-security-token'] !== token) return 'the session token is another';
  const date = String(headers['x-amz-date']);
  if (!date.startsWith(day) || Math.abs(Date.now() - timeOf(date)) > 300_000) return `the time is ${date}`;
  const names = signed.split(';');
  for (const name of ['host', 'x-amz-date', ...(token === undefined ? [] : ['x-amz-security-token'])])
    if (!names.includes(name)) return `${name} is not signed`;
  const hash = sha256(call.body);
  if (headers['x-amz-content-sha256'] !== hash) return 'the hash of the body is another';
  const [path = '', query = ''] = call.path.split('?');
  const canonical = [
    call.method,
    path.split('/').map(encodeURIComponent).join('/'),
    query,
    ...names.map((name) => `${name}:${String(headers[name]).trim().replaceAll(/ +/g, ' ')}`),
    '',
    signed,
    hash,
  ].join('\n');
  const scope = [day, region, service, 'aws4_request'];
  const text = ['AWS4-HMAC-SHA256', date, scope.join('/'), sha256(canonical)].join('\n');
  const key = scope.reduce<string | Buffer>((each, part) => hmac(each, part), `AWS4${secret}`);
  return hmac(key, text).toString('hex') === signature ? undefined : 'the signature is another';
}

function timeOf(date: string): number {
  return Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

function hmac(key: string | Buffer, data: string): Buffer {
  return createHmac('sha256', key).update(data).digest();
}
