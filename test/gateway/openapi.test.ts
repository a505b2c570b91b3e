import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { ERRORS } from '../../core/base/errors';
import { ask } from '../support/calls';
import { type Document, expectShape, operationsOf, readDocuments } from '../support/documents';
import { MODEL, PRICE } from '../support/gateway';
import { ADMIN_KEY, type ReportVendor, startReportVendor } from '../support/report-vendors';
import { textOf } from '../support/sources';
import { useGateway, useUpstream } from '../support/story';
import { messagesFailure } from '../support/upstream';

describe('The OpenAPI documents', () => {
  const upstream = useUpstream();
  let vendor: ReportVendor;
  let documents: { public: Document; admin: Document };

  const gateway = useGateway(async () => {
    vendor = await startReportVendor('anthropic');
    const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    vendor.books.usage.push({ day, apiKeyId: 'apikey_any', model: MODEL, input: 12 });
    vendor.books.costs.push({ day, workspaceId: null, item: 'Claude Usage', amount: '1.5' });
    const reporting = { credential: { env: 'VENDOR_ADMIN_KEY' }, url: vendor.url };
    const aliased = { [MODEL]: { aliases: ['acme/large'] } };
    return {
      env: { VENDOR_ADMIN_KEY: ADMIN_KEY, PUBLIC_URL: 'https://gateway.example:8443/' },
      upstreams: {
        official: { url: upstream.url, tier: 'official', models: aliased, reporting },
        dear: {
          url: upstream.url,
          models: {
            'acme/large': {
              price: { input: 4, output: 10, cacheRead: 0.00000001, above: { tokens: 5, input: 5, output: 11 } },
            },
            'dear-only': { estimatedMaxTokens: 2_000 },
          },
        },
        disabled: {
          url: upstream.url,
          credential: { env: 'NOT_SET' },
          models: { [MODEL]: { price: { input: 99, output: 99 } }, gone: {} },
        },
        chatty: { url: upstream.url, adapter: 'chat', translate: 'never', models: { 'chat-only': {} } },
        translated: { url: upstream.url, adapter: 'chat', models: { 'chat-spoken': {} } },
      },
      configure: (config) => {
        const change = { upstreams: { model: MODEL, add: ['dear'] } };
        config['rollouts'] = { official: { change, stages: [{ share: 1, hold: '1h' }] } };
      },
    };
  });

  before(async () => {
    documents = await readDocuments(gateway);
  });
  after(async () => {
    await vendor?.close();
  });

  for (const listener of ['public', 'admin'] as const) {
    describe(`of the ${listener} listener`, () => {
      it('pass the recommended rules of Redocly', async () => {
        // Off, because the default domain of direct addresses is localhost.
        const config = await createConfig({ extends: ['recommended'], rules: { 'no-server-example.com': 'off' } });
        const found = await lintFromString({ source: JSON.stringify(documents[listener]), config });
        expect(
          found.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`),
        ).to.deep.equal([]);
      });

      it('declare billing and answers of every operation', () => {
        const operations = operationsOf(documents[listener]);
        expect(operations.length).to.be.greaterThan(10);
        for (const { path, operation } of operations) {
          expect(operation['x-billing'].type, path).to.be.oneOf(['PER_TOKEN', 'PER_SECOND', 'FREE']);
          for (const answer of Object.values<Document>(operation.responses))
            expect(answer.description, path).to.be.a('string').that.is.not.equal('');
        }
      });

      it('have a unique id for every operation', () => {
        const ids = operationsOf(documents[listener]).map(({ operation }) => operation.operationId);
        expect(ids).to.deep.equal([...new Set(ids)]);
      });

      it('have an example for every body, which matches the schema', () => {
        const { components } = documents[listener];
        for (const { path, operation } of operationsOf(documents[listener])) {
          const { schema } = operation.requestBody?.content['application/json'] ?? {};
          const said = schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)];
          if (said === undefined || Object.keys(said.properties ?? said.anyOf).length === 0) continue;
          expect(said.example, path).to.be.an('object');
          expectShape(said, said.example, path, components);
        }
      });

      it('contain the catalog of errors, and declare no error status outside of it', () => {
        const { ErrorCode } = documents[listener].components.schemas;
        expect(ErrorCode.enum).to.deep.equal(Object.keys(ERRORS));
        const catalogue = Object.entries(ERRORS).map(([code, kind]) => ({ code, ...kind }));
        expect(documents[listener]['x-errors']).to.deep.equal(catalogue);
        for (const { path, operation } of operationsOf(documents[listener])) {
          for (const [status, { description }] of Object.entries<Document>(operation.responses)) {
            for (const [, code] of description.matchAll(/^`([A-Z_]+)`/gm))
              expect([path, code, statusOf(code, path)]).to.deep.equal([path, code, status]);
          }
        }
      });
    });
  }

  it('name `PUBLIC_URL` as the address of the public listener', () => {
    expect(documents.public.servers).to.deep.equal([{ url: 'https://gateway.example:8443' }]);
    expect(documents.admin.servers).to.deep.equal([{ url: '/' }]);
  });

  it('name only errors that docs/errors.md has', () => {
    for (const { code } of documents.public['x-errors']) expect(textOf('docs/errors.md')).to.contain(`\`${code}\``);
  });

  it("can be read without a key, except the admin listener's document, which needs the operator's token", async () => {
    expect((await gateway.call('/openapi.json', { method: 'GET' })).status).to.equal(200);
    expect((await gateway.call('/admin/v1/openapi.json', { method: 'GET' })).status).to.equal(404);
    expect((await fetch(`${gateway.adminUrl}/admin/v1/openapi.json`)).status).to.equal(401);
  });

  describe('declare the price of a model call', () => {
    const billing = (path: string) => documents.public.paths[path].post['x-billing'];

    it('per token: for each model the price of its most expensive available upstream', () => {
      expect(billing('/v1/messages')).to.deep.include({
        type: 'PER_TOKEN',
        pricingMode: 'PER_MODEL',
        strictModelValidation: true,
        streaming: { supported: true, format: 'sse' },
        estimatedMaxTokens: 2_000,
      });
      expect(billing('/cost/v1/messages').modelPricing[MODEL]).to.deep.equal({
        inputPricePerToken: 0.000005,
        outputPricePerToken: 0.000015,
        cacheCreationPricePerToken: 0.000006,
        cacheReadPricePerToken: 0.000005,
      });
      expect(PRICE.cacheWrite1h).to.equal(6);
    });

    it('under the model name of the best tier, with its other names as aliases, and only for models with an upstream', () => {
      expect(billing('/v1/messages').allowedModels).to.have.members([MODEL, 'dear-only', 'chat-spoken']);
      expect(billing('/v1/messages').modelAliases[MODEL]).to.deep.equal(['acme/large']);
      expect(billing('/v1/chat/completions').allowedModels).to.include('chat-only');
    });

    it('at the path of every strategy, and once for all direct routes', () => {
      for (const prefix of ['', '/default', '/quality', '/speed', '/cost'])
        for (const path of ['/v1/messages', '/v1/chat/completions'])
          expect(billing(prefix + path).type).to.equal('PER_TOKEN');
      const urls = documents.public.paths['/v1/messages'].post.servers.map(({ url }: { url: string }) => url);
      expect(urls).to.deep.equal(['https://gateway.example:8443', 'https://{upstream}.p.localhost:8443']);
    });
  });

  it('mark `autoResume` of every sandbox record as deprecated', () => {
    const marks = [documents.public, documents.admin].flatMap((each) => membersNamed('autoResume', each));
    expect(marks).not.to.have.length(0);
    for (const mark of marks) expect(mark).to.include({ type: 'boolean', deprecated: true });
  });

  it('declare that a sandbox is billed per second', () => {
    const { post } = documents.public.paths['/v1/sandboxes'];
    expect(post['x-billing'].type).to.equal('PER_SECOND');
    expect(post.responses['202'].description).to.contain('record');
    expect(post.requestBody.content['application/json'].schema.properties).to.include.keys(
      'selection',
      'idempotencyKey',
    );
  });

  it('change with a reload and then have another ETag', async () => {
    const read = (etag?: string) =>
      fetch(`${gateway.url}/openapi.json`, { headers: etag === undefined ? {} : { 'if-none-match': etag } });
    const first = await read();
    const etag = first.headers.get('etag') ?? '';
    await first.text();
    expect((await read(etag)).status).to.equal(304);
    await gateway.changeConfiguration((config) => {
      config['serviceEndpoints'].dear.models['dear-only'].price = { input: 7, output: 8 };
    });
    expect((await gateway.admin('POST', '/admin/v1/config/reload')).status).to.equal(200);
    const second = await read(etag);
    expect(second.status).to.equal(200);
    expect(second.headers.get('etag')).not.to.equal(etag);
    const { paths } = (await second.json()) as Document;
    expect(paths['/v1/messages'].post['x-billing'].modelPricing['dear-only'].inputPricePerToken).to.equal(0.000007);
  });

  it('declare the relayed errors of upstreams, by status or as default', async () => {
    const { key } = await gateway.newCustomer('1');
    const { responses } = documents.public.paths['/v1/messages'].post;
    for (const status of [400, 422]) {
      upstream.next(messagesFailure(status));
      const { status: seen, json } = await gateway.call('/v1/messages', { key, body: ask() });
      expect(seen).to.equal(status);
      const said = responses[status] ?? responses.default;
      expectShape(said.content['application/json'].schema, json, `${status}`, documents.public.components);
    }
  });
});

/** Returns every member with this name, anywhere in a document. */
function membersNamed(name: string, part: unknown): unknown[] {
  if (part === null || typeof part !== 'object') return [];
  return Object.entries(part).flatMap(([key, value]) => (key === name ? [value] : membersNamed(name, value)));
}

/** Returns the status of an error at a path. NOT_SUPPORTED of a model call is a mistake of the request. */
function statusOf(code: string | undefined, path: string): string {
  const isModelCall = /\/(?:messages|chat\/completions|responses|responses\/compact|embeddings)$/.test(path);
  return code === 'NOT_SUPPORTED' && isModelCall ? '400' : String(ERRORS[code as keyof typeof ERRORS]?.status);
}
