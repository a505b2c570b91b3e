import { createVerify, generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import type { TestEndpoint } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { messagesAnswer, messagesStream, type RecordedCall } from '../support/upstream';

const MODEL = 'claude-sonnet-4-5@20250929';
const PLACE = `/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/${MODEL}`;
const EMAIL = 'gateway@my-project.iam.gserviceaccount.com';
const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});

describe("Anthropic's models at Vertex AI", () => {
  const upstream = useUpstream();
  let metadata: Server;
  let asked: number;
  let key: string;

  const at = (alias: string, credential: Record<string, unknown>): TestEndpoint => ({
    url: upstream.url,
    adapter: 'vertex',
    adapterSettings: { project: 'my-project', region: 'us-east5' },
    credential,
    models: { [MODEL]: { aliases: [alias] } },
  });

  const gateway = useGateway(async () => {
    asked = 0;
    metadata = createServer((request, response) => {
      const isToken = request.url?.startsWith('/computeMetadata/v1/instance/service-accounts/default/token') === true;
      if (isToken) asked += 1;
      response.writeHead(200, {
        'metadata-flavor': 'Google',
        'content-type': isToken ? 'application/json' : 'text/plain',
      });
      response.end(
        isToken
          ? JSON.stringify({ access_token: `machine-token-${asked}`, expires_in: 3_600, token_type: 'Bearer' })
          : 'ok',
      );
    });
    await new Promise<void>((done) => metadata.listen(0, '127.0.0.1', done));
    const account = { type: 'service_account', client_email: EMAIL, private_key: privateKey, private_key_id: 'key-1' };
    const folder = temporaryFolder({ 'account.json': JSON.stringify(account) });
    return {
      upstreams: {
        token: at('claude-by-token', { env: 'ACCESS_TOKEN' }),
        account: {
          ...at('claude-by-account', { file: 'account.json' }),
          models: { [`a-${MODEL}`]: { aliases: ['claude-by-account'] } },
        },
        machine: {
          ...at('claude-by-machine', { cloud: 'google' }),
          models: { [`m-${MODEL}`]: { aliases: ['claude-by-machine'] } },
        },
      },
      env: {
        ACCESS_TOKEN: 'an-access-token',
        CREDENTIALS_DIR: folder,
        GCE_METADATA_HOST: `127.0.0.1:${(metadata.address() as AddressInfo).port}`,
        METADATA_SERVER_DETECTION: 'assume-present',
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    metadata?.close();
  });

  const call = (more: Record<string, unknown> = {}) =>
    gateway.call('/v1/messages', { key, body: ask({ model: 'claude-by-token', ...more }) });
  const only = (): RecordedCall => upstream.calls[0] as RecordedCall;

  it('get an unstreamed call with the model in its path and the version in its body', async () => {
    upstream.next(messagesAnswer());
    const answer = await call();
    expect(answer.status, answer.text).to.equal(200);
    expect(only().path).to.equal(`${PLACE}:rawPredict`);
    expect(only().headers.authorization).to.equal('Bearer an-access-token');
    expect(only().json).to.deep.equal({
      max_tokens: 200,
      messages: [{ role: 'user', content: 'Hello' }],
      anthropic_version: 'vertex-2023-10-16',
    });
    expect(await gateway.record(key, answer.headers['x-svc-request-id'] ?? '')).to.include({ billing: 'actual' });
  });

  it('get a streamed call at streamRawPredict, and the stream is relayed', async () => {
    upstream.next(messagesStream());
    const answer = await call({ stream: true });
    expect(only().path).to.equal(`${PLACE}:streamRawPredict`);
    expect(only().json).to.include({ stream: true, anthropic_version: 'vertex-2023-10-16' });
    expect(answer.text).to.include('event: message_stop');
    expect(await gateway.record(key, answer.headers['x-svc-request-id'] ?? '')).to.include({ billing: 'actual' });
  });

  it('can be called with the key of a service account, which signs a token that is reused', async () => {
    upstream.always(messagesAnswer());
    for (let times = 0; times < 2; times += 1)
      expect((await call({ model: 'claude-by-account' })).status).to.equal(200);
    const [first, second] = upstream.calls.map(({ headers }) => headers.authorization ?? '');
    expect(first).to.equal(second);
    const [head = '', claims = '', signature = ''] = (first ?? '').replace('Bearer ', '').split('.');
    const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
    expect(read(head)).to.include({ alg: 'RS256', kid: 'key-1' });
    expect(read(claims)).to.include({
      iss: EMAIL,
      sub: EMAIL,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    });
    expect(read(claims).exp * 1_000).to.be.within(Date.now(), Date.now() + 3_600_000);
    const verifier = createVerify('RSA-SHA256').update(`${head}.${claims}`);
    expect(verifier.verify(publicKey, signature, 'base64url')).to.equal(true);
  });

  it('can be called with the identity of the machine, whose token is fetched once for all calls', async () => {
    upstream.always(messagesAnswer());
    for (let times = 0; times < 3; times += 1)
      expect((await call({ model: 'claude-by-machine' })).status).to.equal(200);
    expect(upstream.calls.map(({ headers }) => headers.authorization)).to.deep.equal(
      Array(3).fill('Bearer machine-token-1'),
    );
    expect(asked).to.equal(1);
    expect(gateway.output()).not.to.include('machine-token').and.not.to.include('an-access-token');
  });
});
