import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  OPERATORS_WORK,
  REFUSALS,
  REFUSED,
  SANDBOX_LIFE,
  STORED_RESPONSES,
  STREAMED_CALLS,
  type Steps,
  UNCALLED,
  USAGE,
} from '../clients/steps';
import {
  CLIENT_MAKERS,
  CLIENTS,
  type ClientMaker,
  callerFile,
  runCaller,
  runClientsProgram,
  STRICT_COMPILER,
  type Step,
  type Told,
  typeCheck,
} from '../support/client-makers';
import { temporaryFolder } from '../support/configuration-folder';
import { type Document, expectShape, type Operation, operationsOf, readDocuments } from '../support/documents';
import { installOwnPackage } from '../support/own-packages';
import { OPEN_SANDBOX_GATEWAY } from '../support/sandboxes';
import { useGateway, useUpstream } from '../support/story';
import {
  chatAnswer,
  chatStream,
  embeddingsAnswer,
  messagesAsAsked,
  type RecordedCall,
  responsesAnswer,
  responsesStream,
  type Script,
} from '../support/upstream';

const MODEL = 'demo-model';
const LISTENERS = ['public', 'admin'] as const;
type Listener = (typeof LISTENERS)[number];

/** Answers each call in its own protocol, streamed if the call asks for a stream. */
const AS_ASKED: Script = {
  answer: (exchange) => scriptOf(exchange.call).answer(exchange),
};

function scriptOf({ path, json }: RecordedCall): Script {
  const isStream = (json as { readonly stream?: boolean } | undefined)?.stream === true;
  if (path.includes('/embeddings')) return embeddingsAnswer();
  if (path.includes('/responses')) return isStream ? responsesStream() : responsesAnswer();
  if (path.includes('/chat/')) return isStream ? chatStream() : chatAnswer();
  return messagesAsAsked();
}

describe('The OpenAPI documents in third-party programs', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  let documents: Record<Listener, Document>;
  let folder: string;
  let customer: { accountId: string; keyId: string; key: string };
  let requestId: string;

  const gateway = useGateway(async () => {
    this.timeout(300_000);
    await installOwnPackage('clients');
    upstream.always(AS_ASKED);
    return {
      ...OPEN_SANDBOX_GATEWAY,
      upstreams: {
        acme: {
          url: upstream.url,
          adapter: ['messages', 'chat', 'responses', 'embeddings'],
          models: { [MODEL]: {}, 'demo-embedding': { maxOutput: 0, estimatedMaxTokens: 0 } },
        },
      },
    };
  });

  before(async () => {
    documents = await readDocuments(gateway);
    customer = await gateway.newCustomer('10');
    const body = { model: MODEL, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };
    const { headers } = await gateway.call('/v1/messages', { key: customer.key, body });
    requestId = headers['x-svc-request-id'] ?? '';
    await gateway.record(customer.key, requestId);
    folder = temporaryFolder(
      Object.fromEntries(LISTENERS.map((listener) => [`${listener}.json`, JSON.stringify(documents[listener])])),
    );
    symlinkSync(join(CLIENTS, 'node_modules'), join(folder, 'node_modules'));
  });

  it("pass Redocly's recommended rules", async () => {
    // Skipped, because the default domain of direct addresses is localhost.
    const args = ['--skip-rule=no-server-example.com', '--format=json'];
    for (const listener of LISTENERS) {
      const { output } = await runClientsProgram('redocly', ['lint', `${listener}.json`, ...args], folder);
      const { problems } = JSON.parse(output) as { problems: object[] };
      expect(problems, listener).to.deep.equal([]);
    }
  });

  it("pass Spectral's `spectral:oas` rules, except those that demand a contact and descriptions", async () => {
    // Off, because the gateway does not know its operator's contact, and summaries already describe the operations.
    const rules = { extends: ['spectral:oas'], rules: { 'info-contact': 'off', 'operation-description': 'off' } };
    writeFileSync(join(folder, 'ruleset.json'), JSON.stringify(rules));
    const args = [
      'lint',
      ...LISTENERS.map((listener) => `${listener}.json`),
      '--ruleset',
      'ruleset.json',
      '--format=json',
      '--quiet',
    ];
    const { output } = await runClientsProgram('spectral', args, folder);
    expect(JSON.parse(output)).to.deep.equal([]);
  });

  for (const maker of CLIENT_MAKERS) {
    it(`let ${maker.name} generate a client whose methods all compile and get the documented answers`, async () => {
      const place = makePlace(folder, maker);
      await Promise.all(LISTENERS.map((listener) => makeClient(maker, listener, place)));
      const checked = await typeCheck(place);
      expect(checked.code, checked.output.slice(0, 5_000)).to.equal(0);
      for (const listener of LISTENERS) {
        const told = await runCaller(join(place, `${listener}-caller.ts`), knownAt(listener, maker));
        expect(told).to.have.length(callsOf(listener).called.length);
        for (const answer of told) expectDocumented(documents[listener], answer);
        if (listener === 'public') expectRefusals(told);
      }
    });
  }

  async function makeClient(maker: ClientMaker, listener: Listener, place: string): Promise<void> {
    // A developer reads the public document by its address. The admin document needs the operator's token.
    const from = listener === 'public' ? `${gateway.url}/openapi.json` : join(folder, `${listener}.json`);
    const args = maker.arguments(from, join(place, listener));
    const { code, output } = await runClientsProgram(maker.program, args, place);
    expect(code, output).to.equal(0);
    const { called, uncalled } = callsOf(listener);
    writeFileSync(join(place, `${listener}-caller.ts`), callerFile(maker, listener, called, uncalled));
  }

  function makePlace(parent: string, { program }: ClientMaker): string {
    const place = join(parent, program);
    mkdirSync(place);
    writeFileSync(join(place, 'package.json'), '{ "type": "module" }');
    const project = { compilerOptions: STRICT_COMPILER, include: ['**/*.ts'] };
    writeFileSync(join(place, 'tsconfig.json'), JSON.stringify(project));
    return place;
  }

  function knownAt(listener: Listener, { program }: ClientMaker): Record<string, string> {
    const both = { client: program, email: `${program}@example.com` };
    return listener === 'public'
      ? { ...both, url: gateway.url, key: customer.key }
      : { ...both, url: gateway.adminUrl, key: gateway.adminToken };
  }

  /** Returns a call for every operation. An operation without a step is called with the example of the document. */
  function callsOf(listener: Listener) {
    const operations = operationsOf(documents[listener]);
    const [steps, refused, uncalled] =
      listener === 'public'
        ? [[...STREAMED_CALLS, ...STORED_RESPONSES, ...USAGE, ...SANDBOX_LIFE], REFUSED, []]
        : [OPERATORS_WORK, [], UNCALLED];
    const named = new Set([...steps.map(([operationId]) => operationId), ...uncalled]);
    const others = operations.filter(({ operation }) => !named.has(operation.operationId) || isModelCall(operation));
    const withUsualStep = (each: Operation) => [each, usualStep(each, documents[listener])] as const;
    const withStep = ([operationId, step]: Steps[number]) => [findOperation(operations, operationId), step] as const;
    return {
      called: [...others.map(withUsualStep), ...[...steps, ...refused].map(withStep)],
      uncalled: uncalled.map((operationId) => withUsualStep(findOperation(operations, operationId))),
    };
  }

  function usualStep({ path, operation }: Operation, { components }: Document): Step {
    const values: Record<string, string> = { ...customer, requestId, id: MODEL, name: 'acme', ...QUERIES };
    const parameters: readonly { name: string; in: string; required?: boolean }[] = operation.parameters ?? [];
    const asked = parameters.filter((each) => each.in === 'query' && each.required === true);
    const query = Object.fromEntries(asked.map(({ name }) => [name, values[name] ?? customer.accountId]));
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, values[name] ?? name]);
    const { schema } = operation.requestBody?.content['application/json'] ?? {};
    const body = schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)];
    return {
      ...(inPath.length > 0 && { path: Object.fromEntries(inPath) }),
      ...(asked.length > 0 && { query }),
      ...(body?.example !== undefined && { body: body.example }),
    };
  }
});

/** Values of the parameters that operators' lists require; others take the id of the account. */
const QUERIES = { where: 'region=eu', from: '2026-11-01T00:00:00Z' };

function findOperation(operations: readonly Operation[], operationId: string): Operation {
  const found = operations.find(({ operation }) => operation.operationId === operationId);
  if (found === undefined) throw new Error(`the document has no ${operationId}`);
  return found;
}

function isModelCall({ 'x-billing': { type } }: Operation['operation']): boolean {
  return type === 'PER_TOKEN';
}

/** Expects the document to declare the status of an answer, with its shape and media type. */
function expectDocumented(document: Document, { operationId, status, data }: Told): void {
  const what = `${operationId} ${status}: ${JSON.stringify(data)?.slice(0, 500)}`;
  const { operation } = operationsOf(document).find((each) => each.operation.operationId === operationId) ?? {};
  const { content = {}, description } = operation?.responses[String(status)] ?? {};
  expect(description, what).to.be.a('string');
  if (status >= 400) {
    const { error } = data as { error: { code: string } };
    expect(description, what).to.contain(`\`${error.code}\``);
  } else if (Object.keys(content).length === 0) {
    expect(data ?? '', what).to.equal('');
  } else if (typeof data === 'object') {
    expectShape(content['application/json'].schema, data, what, document.components);
  } else {
    expect(data, what).to.be.a('string');
    const types = Object.keys(content).filter((type) => type !== 'application/json');
    expect(types, what).to.have.length(1);
    if (types[0] === 'text/event-stream') expect(data, what).to.match(/^(?:event|data): /m);
  }
}

function expectRefusals(told: readonly Told[]): void {
  const refused = told.filter(({ status }) => status >= 400);
  const codes = refused.map(({ status, data }) => `${status} ${(data as { error: { code: string } }).error.code}`);
  expect(codes).to.deep.equal(REFUSALS);
}
