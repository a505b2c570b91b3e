import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type AwsKeys, wrongSignature } from '../support/aws-signature';
import { ask } from '../support/calls';
import { asEventStream, chunkMessage, eventStreamMessage, exceptionMessage } from '../support/event-stream';
import type { TestEndpoint } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { messagesAnswer, type RecordedCall, respond, type Script } from '../support/upstream';

const MODEL = 'anthropic.claude-sonnet-4-5-20250929-v1:0';
const REGION = 'us-east-1';
const KEYS: AwsKeys = { id: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const SESSION: AwsKeys = { id: 'ASIAEXAMPLE', secret: 'another/secret', token: 'session+token/==' };
const ROLE: AwsKeys = { id: 'ASIAROLE', secret: 'secret-of-the-role', token: 'token-of-the-role' };
const TEXT_SSE = readFileSync(join(__dirname, '../fixtures/messages/text.sse'));
const FRAMED = { 'content-type': 'application/vnd.amazon.eventstream', 'x-amzn-requestid': 'amazon-id' };

function framed(body: Buffer): Script {
  return respond({ headers: FRAMED, body });
}

describe("Anthropic's models at Amazon Bedrock", () => {
  const upstream = useUpstream();
  const other = useUpstream();
  let key: string;
  let metadata: Server;

  const at = (env: string): TestEndpoint => ({
    url: upstream.url,
    adapter: 'bedrock',
    adapterSettings: { region: REGION },
    credential: { env },
    models: { [MODEL]: { aliases: [`claude-by-${env.toLowerCase()}`] } },
  });
  const gateway = useGateway(async () => {
    const role = {
      AccessKeyId: ROLE.id,
      SecretAccessKey: ROLE.secret,
      Token: ROLE.token,
      Expiration: '2099-01-01T00:00:00Z',
    };
    metadata = createServer((_request, response) => response.end(JSON.stringify(role)));
    await new Promise<void>((done) => metadata.listen(0, '127.0.0.1', done));
    const token = { AccessKeyId: SESSION.id, SecretAccessKey: SESSION.secret, SessionToken: SESSION.token };
    return {
      upstreams: {
        bedrock: { ...at('PLAIN_KEYS'), tier: 'official' },
        spare: {
          url: other.url,
          adapter: 'messages',
          models: { 'claude-spare': { aliases: ['claude-by-plain_keys'] } },
        },
        session: { ...at('SESSION_KEYS'), models: { [`us.${MODEL}`]: { aliases: ['claude-by-session_keys'] } } },
        bearer: { ...at('API_KEY'), models: { [`eu.${MODEL}`]: { aliases: ['claude-by-api_key'] } } },
        machine: {
          ...at('PLAIN_KEYS'),
          credential: { cloud: 'aws' },
          models: { [`au.${MODEL}`]: { aliases: ['claude-by-machine'] } },
        },
        wrong: { ...at('WRONG_KEYS'), models: { [`jp.${MODEL}`]: { aliases: ['claude-by-wrong_keys'] } } },
      },
      env: {
        PLAIN_KEYS: `${KEYS.id}:${KEYS.secret}`,
        SESSION_KEYS: JSON.stringify(token),
        API_KEY: 'ABSKexample',
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${(metadata.address() as AddressInfo).port}/role`,
        WRONG_KEYS: '{"AccessKeyId":"half"}',
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => {
    upstream.reset();
    other.reset();
  });
  after(async () => {
    metadata?.close();
  });

  const call = (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
    gateway.call('/v1/messages', { key, headers, body: ask({ model: 'claude-by-plain_keys', ...more }) });
  const only = (): RecordedCall => upstream.calls[0] as RecordedCall;

  it('receive an unstreamed call with a signature and the model in its path, and the reported usage is charged', async () => {
    upstream.next(messagesAnswer());
    const answer = await call();
    expect(answer.status, answer.text).to.equal(200);
    expect(only().path).to.equal(`/model/${encodeURIComponent(MODEL)}/invoke`);
    expect(wrongSignature(only(), KEYS, REGION)).to.equal(undefined);
    expect(only().json).to.deep.equal({
      max_tokens: 200,
      messages: [{ role: 'user', content: 'Hello' }],
      anthropic_version: 'bedrock-2023-05-31',
    });
    const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
    expect(record).to.include({ billing: 'actual' });
    expect(JSON.stringify(only().headers)).not.to.include(KEYS.secret);
  });

  it('answer with a stream that the client receives as Messages events, and the reported usage is charged', async () => {
    upstream.next(framed(asEventStream(TEXT_SSE)));
    const answer = await call({ stream: true });
    expect(only().path).to.equal(`/model/${encodeURIComponent(MODEL)}/invoke-with-response-stream`);
    expect(wrongSignature(only(), KEYS, REGION)).to.equal(undefined);
    expect(only().json).not.to.have.any.keys('stream', 'model');
    expect(answer.headers['content-type']).to.match(/^text\/event-stream/);
    const eventsOf = (text: string) => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);
    expect(eventsOf(answer.text)).to.deep.equal(eventsOf(TEXT_SSE.toString()));
    const id = answer.headers['x-svc-request-id'] ?? '';
    expect(await gateway.record(key, id)).to.include({ billing: 'actual' });
    const { json } = await gateway.admin('GET', `/admin/v1/usage/${id}/attempts`);
    expect(json.items[0]).to.include({
      upstream: 'bedrock',
      upstreamRequestId: 'amazon-id',
      credential: 'env PLAIN_KEYS',
    });
  });

  it("can be called with session credentials in AWS's JSON format, and the session token is sent", async () => {
    upstream.next(messagesAnswer());
    expect((await call({ model: 'claude-by-session_keys' })).status).to.equal(200);
    expect(wrongSignature(only(), SESSION, REGION)).to.equal(undefined);
  });

  it("can be called with the credentials of the container's AWS role", async () => {
    upstream.next(messagesAnswer());
    expect((await call({ model: 'claude-by-machine' })).status).to.equal(200);
    expect(wrongSignature(only(), ROLE, REGION)).to.equal(undefined);
  });

  it('can be called with an Amazon Bedrock API key, which the gateway sends unchanged', async () => {
    upstream.next(messagesAnswer());
    expect((await call({ model: 'claude-by-api_key' })).status).to.equal(200);
    expect(only().headers.authorization).to.equal('Bearer ABSKexample');
  });

  it('receive in the body the beta features that Bedrock supports, and no unknown ones', async () => {
    upstream.next(messagesAnswer());
    await call({}, { 'anthropic-beta': 'claude-code-20250219,context-1m-2025-08-07' });
    expect(only().json).to.include({ anthropic_version: 'bedrock-2023-05-31' });
    expect((only().json as { anthropic_beta: unknown }).anthropic_beta).to.deep.equal(['context-1m-2025-08-07']);
  });

  const failing: readonly (readonly [string, Script, boolean])[] = [
    ['is throttled', respond({ status: 429, body: { message: 'Too many requests' } }), false],
    ['has a failing model', respond({ status: 424, body: { message: 'model error' } }), false],
    [
      'ends a stream with an exception before content',
      framed(exceptionMessage('throttlingException', 'slow down')),
      true,
    ],
    ['sends a frame whose checksum is wrong', framed(spoiled(asEventStream(TEXT_SSE))), true],
    ['ends within a frame', framed(asEventStream(TEXT_SSE).subarray(0, 60)), true],
    ['announces a frame of four gigabytes', framed(Buffer.alloc(64, 0xff)), true],
  ];
  for (const [what, script, stream] of failing)
    it(`are replaced by another upstream if Bedrock ${what}`, async () => {
      upstream.next(script);
      other.next(messagesAnswer());
      const answer = await call(stream ? { stream: true } : {});
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers['x-routing-provider']).to.equal('spare');
      await gateway.admin('POST', '/admin/v1/upstreams/bedrock/enable');
    });

  it('end a stream with the Messages error event if an exception follows content', async () => {
    const events = TEXT_SSE.toString()
      .split('\n\n')
      .filter((each) => each.includes('data: '));
    const begun = events.slice(0, 4).map((each) => chunkMessage(each.slice(each.indexOf('data: ') + 6)));
    const later = eventStreamMessage({ ':event-type': 'later', ':message-type': 'event' }, '{}');
    upstream.next(
      framed(Buffer.concat([...begun, later, exceptionMessage('modelStreamErrorException', 'the model broke')])),
    );
    const answer = await call({ stream: true });
    expect(answer.text).to.include('content_block_delta').and.include('event: error');
    expect(answer.text).not.to.include('message_stop');
  });

  it('are not called with an invalid credential, and the log gives the reason without the credential', async () => {
    const answer = await call({ model: 'claude-by-wrong_keys' });
    expect(answer.status).to.equal(502);
    expect(upstream.calls).to.have.length(0);
    expect(gateway.output()).to.include('the credential is neither ID:SECRET nor JSON');
    for (const secret of [KEYS.secret, SESSION.secret, ROLE.secret, 'ABSKexample', '"half"'])
      expect(gateway.output()).not.to.include(secret);
  });
});

function spoiled(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(40) ^ 1, 40);
  return copy;
}
