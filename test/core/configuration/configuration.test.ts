// biome-ignore-all lint/suspicious/noTemplateCurlyInString: so the variables of a YAML file are written
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { registerAdapter } from '../../../core/catalog/adapters';
import { PROTOCOL_NAMES } from '../../../core/catalog/protocols';
import type { UpstreamAdapter } from '../../../core/catalog/upstream';
import { type Configuration, configurationReader, type Section } from '../../../core/configuration/configuration';
import { readSystemSettings } from '../../../core/configuration/system-settings';
import { ConfigurationError } from '../../../core/configuration/yaml-file';
import { definePolicy } from '../../../core/gateway/policy';
import chat from '../../../plugins/upstreams/chat';
import embeddings from '../../../plugins/upstreams/embeddings';
import { sampleAdapter } from '../../support/catalog-samples';
import { temporaryFolder } from '../../support/configuration-folder';

const ADAPTERS = [
  sampleAdapter('sample-messages', ['messages']),
  sampleAdapter('sample-chat', ['chat']),
  sampleAdapter('sample-embeddings', ['embeddings']),
];

const nothing = { type: 'object', properties: {} } as const;
const unused = async () => {
  throw new Error('this step is never run');
};

/** Stand-ins for the real policies. Only their names, settings, needs and provisions matter here. */
const POLICIES = [
  definePolicy({
    contract: 'policy/1',
    name: 'who',
    summary: '',
    schema: nothing,
    needs: [],
    provides: ['key'],
    prepare: () => unused,
  }),
  definePolicy({
    contract: 'policy/1',
    name: 'what',
    summary: '',
    schema: { type: 'object', properties: { prefixes: { type: 'array', items: { type: 'string' }, default: ['x-'] } } },
    needs: ['key'],
    provides: ['request'],
    prepare: () => unused,
  }),
  definePolicy({
    contract: 'policy/1',
    name: 'where',
    summary: '',
    schema: {
      type: 'object',
      properties: {
        strategy: { enum: ['quality', 'speed'], default: 'quality' },
        patience: { type: 'integer' },
        upstreams: { type: 'array', items: { type: 'string', 'x-names': 'upstream' } },
      },
    },
    needs: ['key', 'request'],
    provides: ['candidates'],
    prepare: () => unused,
  }),
  definePolicy({
    contract: 'policy/1',
    name: 'reply',
    summary: '',
    schema: nothing,
    needs: ['candidates'],
    provides: [],
    answers: true,
    prepare: () => unused,
  }),
];

/** A plugin's own section of the file; `check` runs after the schema. */
const OFFERINGS: Section = {
  schema: {
    type: 'object',
    additionalProperties: {
      type: 'object',
      additionalProperties: false,
      required: ['model'],
      properties: {
        model: { type: 'string' },
        also: { type: 'array', items: { type: 'string', 'x-names': 'model' } },
        hourlyUsd: { type: 'number', minimum: 0, default: 1 },
      },
    },
  },
  check: (offerings: Readonly<Record<string, { model: string }>>, catalog) =>
    Object.entries(offerings)
      .filter(([, { model }]) => catalog !== undefined && !('found' in catalog.find(model)))
      .map(([name, { model }]) => ({ path: [name, 'model'], message: `model "${model}" does not exist` })),
};

const SOUND = `http: { port: 8080 }
admin: { port: 9876 }
apiEndpoints:
  main: { paths: [/v1/messages, /main/v1/messages], methods: [POST] }
  fast: { paths: [/fast/v1/messages], methods: [POST] }
serviceEndpoints:
  acme:
    url: https://api.acme.example/base
    adapter: sample-messages
    credential: { env: ACME_KEY }
    models:
      large-4.5:
        aliases: [large]
        context: 200000
        maxOutput: 2000
        price: { input: 3, output: 15 }
policies: [who, what, where, reply]
pipelines:
  normal:
    apiEndpoints: [main]
    policies:
      - who:
      - what:
      - where: [{ action: { strategy: quality } }]
      - reply:
  quick:
    apiEndpoints: [fast]
    policies:
      - who:
      - what:
      - where: [{ action: { strategy: speed } }]
      - reply:
`;

const ENV = { ACME_KEY: 'hush' };

const read = configurationReader({ policies: POLICIES, sections: new Map([['offerings', OFFERINGS]]) });

function load(text: string, env: NodeJS.ProcessEnv = ENV): Configuration {
  return read(temporaryFolder({ 'gateway.config.yml': text }), env);
}

/** Returns the valid file with one text replaced. */
function changed(from: string, to: string): string {
  expect(SOUND).to.contain(from);
  return SOUND.replace(from, () => to);
}

function problemsOf(text: string, env: NodeJS.ProcessEnv = ENV): readonly string[] {
  try {
    load(text, env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split('\n');
    throw error;
  }
  throw new Error('the configuration was taken');
}

/** Lists the problems of a folder's configuration; empty if it is valid. */
function problemsOfFolder(folder: string, env: NodeJS.ProcessEnv): readonly string[] {
  try {
    read(folder, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split('\n');
    throw error;
  }
}

describe('the configuration', () => {
  let forget: (() => void)[] = [];
  before(() => {
    forget = ADAPTERS.map(registerAdapter);
  });
  after(() => {
    for (const each of forget) each();
  });

  describe('a valid configuration', () => {
    let configuration: Configuration;
    before(() => {
      configuration = load(SOUND);
    });

    it('has the pipelines in order, each step with the defaults of its settings', () => {
      const [normal] = configuration.pipelines;
      expect(normal?.name).to.equal('normal');
      expect(normal?.endpoints).to.deep.equal([
        { name: 'main', host: undefined, paths: ['/v1/messages', '/main/v1/messages'], methods: ['POST'] },
      ]);
      expect(normal?.steps.map(({ policy, settings }) => [policy.name, settings])).to.deep.equal([
        ['who', {}],
        ['what', { prefixes: ['x-'] }],
        ['where', { strategy: 'quality' }],
        ['reply', {}],
      ]);
    });

    it('has the upstreams with the defaults of their settings', () => {
      const [acme] = configuration.catalog.upstreams;
      expect(acme).to.include({ name: 'acme', tier: 'standard', weight: 1, allowPrivate: false });
      expect(acme?.credential).to.include({ value: 'hush', weight: 1 });
      expect(acme?.disabled).to.equal(undefined);
      expect(acme?.url.href).to.equal('https://api.acme.example/base');
      expect(acme?.timeouts).to.deep.equal({
        connectMs: 120_000,
        headersMs: 120_000,
        firstTokenMs: undefined,
        idleMs: 300_000,
        answerMs: 600_000,
      });
    });

    it('makes holds for 4096 output tokens by default, or for maxOutput if that is lower', () => {
      expect(configuration.catalog.models[0]?.entries[0]?.model.estimatedMaxTokens).to.equal(2_000);
      const [model] = load(changed('maxOutput: 2000', 'maxOutput: 9000')).catalog.models;
      expect(model?.entries[0]?.model.estimatedMaxTokens).to.equal(4_096);
    });

    it('serves a model without output only for embeddings, and any other model in its configured protocols', () => {
      const text = changed('adapter: sample-messages', 'adapter: [sample-messages, sample-chat, sample-embeddings]');
      const served = (more: string) => {
        const { catalog } = load(text.replace('maxOutput: 2000', more));
        const [model] = catalog.models;
        return PROTOCOL_NAMES.filter((protocol) => model && catalog.candidates(model, protocol).length > 0);
      };
      expect(served('maxOutput: 2000')).to.deep.equal(['messages', 'chat']);
      expect(served('maxOutput: 2000\n        protocols: [chat]')).to.deep.equal(['chat']);
      expect(served('maxOutput: 0')).to.deep.equal(['embeddings']);
      expect(served('maxOutput: 0\n        protocols: [embeddings]')).to.deep.equal(['embeddings']);
    });

    it('has the exact prices of its file, down to 0.00000001 and with a threshold', () => {
      const price =
        '{ input: 0.00000001, output: 0.0000005, cacheWrite: "0.125", cacheWrite1h: 1e-7, cacheRead: 0.1, above: { tokens: 5, input: 0.3, output: 22.5 } }';
      const [model] = load(changed('{ input: 3, output: 15 }', price)).catalog.models;
      const read = model?.entries[0]?.model.price;
      expect(read?.rates).to.include({
        input: 1n,
        output: 50n,
        cacheWrite: 12_500_000n,
        cacheWrite1h: 10n,
        cacheRead: 10_000_000n,
      });
      expect(read?.above?.tokens).to.equal(5);
      expect(read?.above?.rates).to.include({
        input: 30_000_000n,
        output: 2_250_000_000n,
        cacheWrite: 30_000_000n,
        cacheWrite1h: 30_000_000n,
        cacheRead: 30_000_000n,
      });
    });

    it('has a revision that changes only when the text of the file changes', () => {
      expect(load(SOUND, {}).revision).to.equal(configuration.revision);
      expect(load(`${SOUND}# a word\n`).revision).not.to.equal(configuration.revision);
    });
  });

  describe('a configuration with the credential of an upstream', () => {
    const disabledOf = (text: string, env: NodeJS.ProcessEnv = {}, files: Record<string, string> = {}) => {
      const folder = temporaryFolder({ 'gateway.config.yml': text, ...files });
      const [acme] = read(folder, env).catalog.upstreams;
      return [acme?.credential.value, acme?.disabled];
    };
    const fromFile = changed('{ env: ACME_KEY }', '{ file: keys/acme }');

    it("disables the upstream if the credential's environment variable is unset, empty or blank", () => {
      for (const env of [{}, { ACME_KEY: '' }, { ACME_KEY: ' \n' }])
        expect(disabledOf(SOUND, env)).to.deep.equal([undefined, 'ACME_KEY is not set']);
    });

    it("disables the upstream if the credential's file does not exist or is empty", () => {
      expect(disabledOf(fromFile)).to.deep.equal([undefined, 'the credential file keys/acme is missing']);
      expect(disabledOf(fromFile, {}, { 'keys/acme': '\n' })).to.deep.equal([
        undefined,
        'the credential file keys/acme is empty',
      ]);
    });
  });

  it('refuses prices at which one call could cost more than the ledger can count', () => {
    const at = (price: number) => changed('price: { input: 3, output: 15 }', `price: { input: 3, output: ${price} }`);
    // Each of 128 answers has 202,000 output tokens.
    expect(load(at(3_000_000)).catalog.upstreams).to.have.length(1);
    expect(problemsOf(at(4_000_000)).join('\n')).to.match(
      /models\.large-4\.5\.price: one call could cost USD 103424000/,
    );
    const huge = changed('context: 200000', 'context: 9000000000000000');
    expect(problemsOf(huge).join('\n')).to.match(/one call could cost/);
  });

  describe('a configuration with a credential file', () => {
    const withFile = (file: string) => changed('{ env: ACME_KEY }', `{ file: ${file} }`);
    /** Makes a folder with a secret outside the configuration's folder, and a folder of credentials. */
    const folders = (file: string) => {
      const outside = temporaryFolder({ secret: 'hush', 'keys/acme': 'the key' });
      const inside = temporaryFolder({ 'gateway.config.yml': withFile(file), '.tollgate/admin-token': 'hush' });
      symlinkSync(join(outside, 'secret'), join(inside, 'link'));
      symlinkSync(join(outside, 'keys'), join(inside, 'folder'));
      return { inside, outside };
    };
    const problemsIn = (folder: string, env: NodeJS.ProcessEnv = {}) => problemsOfFolder(folder, env).join('\n');

    for (const file of ['../secret', 'link', 'folder/acme', '/etc/hostname', '.tollgate/admin-token', 'a/../../x']) {
      it(`refuses ${file}, because it is outside the folder of credentials`, () => {
        const { inside } = folders(file);
        expect(problemsIn(inside))
          .to.match(/credential\.file: .*CREDENTIALS_DIR/)
          .and.not.to.contain('hush');
      });
    }

    it('reads the file from the folder that CREDENTIALS_DIR names', () => {
      for (const file of ['keys/acme', 'folder/acme']) {
        const { inside, outside } = folders(file);
        symlinkSync(join(outside, 'keys'), join(outside, 'folder'));
        const { catalog } = read(inside, { CREDENTIALS_DIR: outside });
        expect(catalog.upstreams[0]?.credential.value).to.equal('the key');
      }
      const { inside, outside } = folders('link');
      expect(problemsIn(inside, { CREDENTIALS_DIR: outside })).to.equal('');
      expect(read(inside, { CREDENTIALS_DIR: outside }).catalog.upstreams[0]?.disabled).to.match(/link is missing/);
    });

    it('refuses a file in the data folder, wherever the data folder is', () => {
      const folder = temporaryFolder({
        'gateway.config.yml': withFile('data/admin-token'),
        'data/admin-token': 'hush',
      });
      expect(problemsIn(folder, { DATA_DIR: join(folder, 'data') })).to.match(/CREDENTIALS_DIR/);
    });
  });

  describe('a configuration with settings of adapters', () => {
    const regional: UpstreamAdapter = {
      ...sampleAdapter('regional', ['messages']),
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: { region: { type: 'string', default: 'here' } },
      },
    };
    let forgetThese: (() => void)[] = [];
    before(() => {
      const signing = { ...sampleAdapter('signing', ['messages']), sign: () => ({}) };
      forgetThese = [chat, embeddings, regional, signing].map(registerAdapter);
    });
    after(() => {
      for (const each of forgetThese) each();
    });
    const withSettings = (settings: string, adapter = '[chat, embeddings]') =>
      changed('adapter: sample-messages', `adapter: ${adapter}\n    adapterSettings: ${settings}`);

    it("accepts a setting that only one of two adapters has, and adds that adapter's defaults", () => {
      const [acme] = load(withSettings('{ auth: api-key }', '[chat, regional]')).catalog.upstreams;
      expect(acme?.adapterSettings).to.deep.equal({ auth: 'api-key', region: 'here' });
    });

    it('refuses a WebSocket for an upstream whose adapter signs requests', () => {
      const text = changed('adapter: sample-messages', 'webSocket: true\n    adapter: signing');
      expect(problemsOf(text).join('\n')).to.match(
        /webSocket: is not supported with an adapter that signs each request/,
      );
    });

    const refused: readonly (readonly [string, RegExp])[] = [
      ['{ pth: { chat: /x } }', /adapterSettings\.pth: unknown setting "pth"; did you mean "path"/],
      ['{ path: /x }', /adapterSettings\.path: expected object, not a string/],
      ['{ path: { chat: v1 } }', /adapterSettings\.path\.chat: expected a path that begins with one \//],
      ['{ path: { chats: /v1 } }', /adapterSettings\.path\.chats: unknown setting "chats"; did you mean "chat"/],
      ['{ auth: Bearer }', /adapterSettings\.auth: expected the name of a header in lower case/],
      ['{ auth: content-length }', /adapterSettings\.auth: expected the name of a header/],
      ['{ headers: { Host: x } }', /adapterSettings\.headers\.Host: expected the name of a header/],
      ['{ headers: { host: x } }', /adapterSettings\.headers\.host: expected the name of a header/],
      ['{ headers: { x-a: "a\\nb" } }', /adapterSettings\.headers\.x-a: expected printable ASCII in one line/],
    ];
    for (const [settings, message] of refused)
      it(`refuses the adapter settings ${settings}`, () => {
        const problems = problemsOf(withSettings(settings)).filter((each) => each.includes('adapterSettings'));
        expect(problems, 'once for both adapters').to.have.length(1);
        expect(problems[0]).to.match(message);
      });
  });

  describe('a configuration with reports of the vendor', () => {
    const withReporting = (text: string) =>
      changed('credential: { env: ACME_KEY }', `credential: { env: ACME_KEY }\n    reporting: { ${text} }`);

    it("reads the reports at the upstream's URL by default, or names the missing variable of their credential", () => {
      const reportingOf = (text: string) => load(withReporting(text)).catalog.upstreams[0]?.reporting;
      const read = reportingOf("vendor: openai, credential: { env: ACME_KEY }, alarmAboveUsd: '0.25'");
      expect(read).to.include({ vendor: 'openai', credential: 'hush', alarmAboveE8: 25_000_000n });
      expect(read?.url.href).to.equal('https://api.acme.example/base');
      expect(reportingOf('vendor: openai, credential: { env: NOT_SET }')).to.include({
        credential: undefined,
        missing: 'NOT_SET is not set',
        alarmAboveE8: 100_000_000n,
      });
    });

    it('reads a threshold of alarms that JavaScript would write with an exponent', () => {
      const read = load(withReporting('vendor: openai, credential: { env: ACME_KEY }, alarmAboveUsd: 0.0000001'));
      expect(read.catalog.upstreams[0]?.reporting?.alarmAboveE8).to.equal(10n);
    });

    for (const [text, message] of [
      ['credential: { env: ACME_KEY }', /reporting: add `vendor`/],
      ['vendor: openai, credential: { env: ADMIN_TOKEN }', /reporting\.credential\.env: ADMIN_TOKEN is reserved/],
      ['vendor: openai, credential: { env: ACME_KEY }, alarmAboveUsd: -1', /reporting\.alarmAboveUsd: expected/],
    ] as const)
      it(`refuses the report settings { ${text} }`, () =>
        expect(problemsOf(withReporting(text)).join('\n')).to.match(message));
  });

  describe('a configuration with several ways to give credentials', () => {
    const withCredentials = (text: string) => changed('credential: { env: ACME_KEY }', text);
    const upstreamOf = (text: string, env: NodeJS.ProcessEnv = ENV) =>
      load(withCredentials(text), env).catalog.upstreams[0];

    it('reads a list of credentials with names and weights', () => {
      const env = { ...ENV, OTHER: 'more' };
      const { credentials = [] } =
        upstreamOf('credentials: [{ env: ACME_KEY, weight: 3 }, { env: OTHER, name: spare }]', env) ?? {};
      expect(credentials.map(({ name, weight, value }) => [name, weight, value])).to.deep.equal([
        ['env ACME_KEY', 3, 'hush'],
        ['spare', 1, 'more'],
      ]);
    });

    it('warns of a missing credential even if the upstream has another one', () => {
      const { catalog, warnings } = load(withCredentials('credentials: [{ env: ACME_KEY }, { env: OTHER }]'));
      expect(catalog.upstreams[0]?.disabled).to.equal(undefined);
      expect(warnings.map(({ message }) => message)).to.deep.equal([
        'serviceEndpoints.acme.credentials: upstream "acme" is called without one of its credentials: OTHER is not set',
      ]);
      expect(upstreamOf('credentials: [{ env: ACME_KEY }, { env: OTHER }]', {})?.disabled).to.equal(
        'ACME_KEY is not set; OTHER is not set',
      );
    });

    it('runs no credential command while it only checks the file', () => {
      const folder = temporaryFolder({ 'gateway.config.yml': withCredentials('credential: { command: [bin/token] }') });
      const [acme] = read(folder, ENV).catalog.upstreams;
      expect([acme?.disabled, acme?.credential.missing]).to.deep.equal([
        undefined,
        'the credential has not been fetched yet',
      ]);
    });

    it('refuses a credential command outside the folder of credentials', () => {
      for (const program of ['/bin/sh', '../token', '.tollgate/token'])
        expect(problemsOf(withCredentials(`credential: { command: [${program}, -c, id] }`)).join('\n')).to.match(
          /credential\.command: .* is outside the credentials folder; move the program there/,
        );
    });

    const refused: readonly (readonly [string, RegExp])[] = [
      ['prefill: false', /acme: "credential" is missing/],
      ['credential: { env: ACME_KEY }, credentials: [{ env: ACME_KEY }]', /keep one of them$/],
      ['credential: {}', /credential: expected one of env, file, command, cloud, none/],
      ['credential: { env: ACME_KEY, none: true }', /credential: expected one of env, file, command, cloud, none/],
      [
        'credentials: [{ env: ACME_KEY }, { env: ACME_KEY }]',
        /credentials\.?\[?1\]?: the name "env ACME_KEY" is used twice/,
      ],
      ['credential: { env: ACME_KEY, refreshEvery: 5m }', /refreshEvery: .*`command` or `cloud`/],
      ['credential: { command: token }', /credential\.command: expected array/],
      ['credential: { cloud: azure }', /credential\.cloud: expected one of aws, google/],
      ['credentials: []', /credentials: expected at least 1 entry/],
    ];
    for (const [text, message] of refused)
      it(`refuses the credential ${text}`, () => {
        const lines = text.split(/, (?=credentials)/).join('\n    ');
        expect(problemsOf(withCredentials(lines)).join('\n')).to.match(message);
      });
  });

  for (const name of ['ADMIN_TOKEN', 'DATABASE_URL', 'REDIS_URL', 'TOLLGATE_TOKEN', 'PGPASSWORD']) {
    it(`refuses ${name}, a secret of the gateway, as an upstream's credential and as a variable`, () => {
      const env = { [name]: 'hush', ACME_KEY: 'hush' };
      const texts = [
        changed('{ env: ACME_KEY }', `{ env: ${name} }`),
        changed('https://api.acme.example/base', `https://api.acme.example/\${${name}}`),
        changed('https://api.acme.example/base', `https://api.acme.example/\${${name}:-x}`),
      ];
      for (const text of texts)
        expect(problemsOf(text, env).join('\n')).to.contain(`${name} is reserved for a secret of the gateway`);
    });
  }

  const WRONG: readonly (readonly [what: string, from: string, to: string, problem: string])[] = [
    [
      'customer prices with an unknown model',
      'http: { port: 8080 }',
      'customerPrices: { partner: { models: { nobodys: { price: { input: 1, output: 1 } } } } }\nhttp: { port: 8080 }',
      'gateway.config.yml:1:40: customerPrices.partner.models.nobodys: no upstream has a model with this name',
    ],
    [
      'customer prices with a factor of 0',
      'http: { port: 8080 }',
      'customerPrices: { partner: { factor: 0 } }\nhttp: { port: 8080 }',
      'gateway.config.yml:1:30: customerPrices.partner.factor: expected a factor from 0.1 to 100',
    ],
    [
      'an unknown policy in a pipeline, with the nearest name',
      '      - where: [{ action: { strategy: quality } }]',
      '      - were: [{ action: { strategy: quality } }]',
      'gateway.config.yml:24:9: pipelines.normal.policies[2]: policy "were" does not exist; did you mean "where"?',
    ],
    [
      'a policy that is used and not declared',
      'policies: [who, what, where, reply]',
      'policies: [who, what, where]',
      'gateway.config.yml:25:9: pipelines.normal.policies[3]: "reply" must also be listed under `policies`',
    ],
    [
      'a wrong order: pipeline, policy, missing field and remedy',
      '      - who:\n      - what:\n      - where: [{ action: { strategy: quality } }]',
      '      - what:\n      - who:\n      - where: [{ action: { strategy: quality } }]',
      'gateway.config.yml:22:9: pipelines.normal.policies[0]: "what" in pipeline "normal" needs `key` of the call, which no earlier policy provides: put "who" before it',
    ],
    [
      'an unknown setting of a policy, with the nearest name',
      '{ strategy: quality }',
      '{ stratgy: quality }',
      'gateway.config.yml:24:29: pipelines.normal.policies[2].where[0].action.stratgy: unknown setting "stratgy"; did you mean "strategy"?',
    ],
    [
      'a wrong value of a setting, with the nearest one',
      '{ strategy: quality }',
      '{ strategy: qualty }',
      'gateway.config.yml:24:29: pipelines.normal.policies[2].where[0].action.strategy: expected one of quality, speed; did you mean "quality"?',
    ],
    [
      'a pipeline that ends without an answer',
      '      - where: [{ action: { strategy: quality } }]\n      - reply:',
      '      - where: [{ action: { strategy: quality } }]',
      'gateway.config.yml:24:9: pipelines.normal.policies[2]: pipeline "normal" ends without an answer: end it with a policy that answers, such as "sse-relay"',
    ],
    [
      'an endpoint that is not there',
      'apiEndpoints: [main]',
      'apiEndpoints: [mian]',
      'gateway.config.yml:20:20: pipelines.normal.apiEndpoints[0]: endpoint "mian" does not exist; did you mean "main"?',
    ],
    [
      'an endpoint in two pipelines',
      'apiEndpoints: [fast]',
      'apiEndpoints: [fast, main]',
      'gateway.config.yml:27:26: pipelines.quick.apiEndpoints[1]: endpoint "main" already belongs to pipeline "normal"',
    ],
    [
      'two endpoints on one path',
      '/fast/v1/messages]',
      '/fast/v1/messages, /v1/messages]',
      'gateway.config.yml:5:38: apiEndpoints.fast.paths[1]: "/v1/messages" is already served by endpoint "main"',
    ],
    [
      'an endpoint that no pipeline serves',
      '  fast: { paths:',
      '  slow: { paths: [/slow] }\n  fast: { paths:',
      'gateway.config.yml:5:3: apiEndpoints.slow: no pipeline serves endpoint "slow": add it to `apiEndpoints` of a pipeline, or remove it',
    ],
    [
      'a path with a pattern, which nothing would reach',
      '/fast/v1/messages]',
      '/fast/v1/messages, /fast/:version/messages]',
      'gateway.config.yml:5:38: apiEndpoints.fast.paths[1]: no request can match "/fast/:version/messages": paths are compared literally, and ":" cannot be part of one',
    ],
    [
      'an upstream that is not there, in the settings of a policy',
      '{ strategy: quality }',
      '{ upstreams: [acmee] }',
      'gateway.config.yml:24:41: pipelines.normal.policies[2].where[0].action.upstreams[0]: upstream "acmee" does not exist; did you mean "acme"?',
    ],
    [
      'a model that is not there, in a section',
      'policies: [who',
      'offerings: { tiny: { model: large, also: [lareg] } }\npolicies: [who',
      'gateway.config.yml:17:43: offerings.tiny.also[0]: model "lareg" does not exist; did you mean "large"?',
    ],
    [
      'a misspelt part of an endpoint, which would have caught everything',
      'fast: { paths:',
      'fast: { pathz: [/x], paths:',
      'gateway.config.yml:5:11: apiEndpoints.fast.pathz: unknown setting "pathz"; did you mean "paths"?',
    ],
    [
      'an unknown adapter, with the known ones',
      'adapter: sample-messages',
      'adapter: sample-mesages',
      'gateway.config.yml:9:5: serviceEndpoints.acme.adapter: adapter "sample-mesages" does not exist; did you mean "sample-messages"?',
    ],
    [
      'a price with nine decimals',
      '{ input: 3, output: 15 }',
      '{ input: 3, output: 0.123456789 }',
      'gateway.config.yml:16:28: serviceEndpoints.acme.models.large-4.5.price.output: expected at most 8 decimals',
    ],
    [
      'more held for than can be answered',
      'maxOutput: 2000',
      'maxOutput: 2000\n        estimatedMaxTokens: 2001',
      'gateway.config.yml:16:9: serviceEndpoints.acme.models.large-4.5.estimatedMaxTokens: expected at most the value of maxOutput (2000)',
    ],
    [
      'a model without output at an upstream without embeddings',
      'maxOutput: 2000',
      'maxOutput: 0',
      'gateway.config.yml:15:9: serviceEndpoints.acme.models.large-4.5.maxOutput: 0 is for models of embeddings, and no adapter of the upstream speaks that protocol',
    ],
    [
      'a model with output at an upstream of embeddings alone',
      'adapter: sample-messages',
      'adapter: sample-embeddings',
      "gateway.config.yml:15:9: serviceEndpoints.acme.models.large-4.5.maxOutput: expected 0, because the upstream's adapters speak no protocol but embeddings",
    ],
    [
      'a protocol that no adapter speaks',
      'maxOutput: 2000',
      'maxOutput: 2000\n        protocols: [messages, chat]',
      'gateway.config.yml:16:31: serviceEndpoints.acme.models.large-4.5.protocols[1]: no adapter of the upstream speaks it',
    ],
    [
      'a duration without a unit',
      'adapter: sample-messages',
      'adapter: sample-messages\n    timeouts: { connect: "10" }',
      'gateway.config.yml:10:17: serviceEndpoints.acme.timeouts.connect: expected a duration such as 250ms, 10s, 5m or 1h',
    ],
    [
      'a longer wait for a connection than two minutes',
      'adapter: sample-messages',
      'adapter: sample-messages\n    timeouts: { headers: 3m }',
      'gateway.config.yml:10:17: serviceEndpoints.acme.timeouts.headers: expected at most 120s',
    ],
    [
      'an address that is none',
      'https://api.acme.example/base',
      'https://api acme',
      'gateway.config.yml:8:5: serviceEndpoints.acme.url: is not a valid URL',
    ],
    [
      "an upstream's name that cannot be a host name",
      '  acme:',
      '  Acme_1:',
      'gateway.config.yml:7:3: serviceEndpoints.Acme_1: must match ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
    ],
  ];

  describe('a configuration with sections of plugins', () => {
    const withOffering = (text: string) => `${SOUND}offerings:\n  tiny: ${text}\n`;

    it('passes each section, completed with its defaults, to its plugin', () => {
      const { sections } = load(withOffering('{ model: large }'));
      expect(sections.get('offerings')).to.deep.equal({ tiny: { model: 'large', hourlyUsd: 1 } });
    });

    it('checks a section first by its schema and then by its plugin', () => {
      expect(problemsOf(withOffering('{ model: large, hourlyUsd: -1 }'))).to.deep.equal([
        'gateway.config.yml:34:25: offerings.tiny.hourlyUsd: expected at least 0',
      ]);
      expect(problemsOf(withOffering('{ model: huge }'))).to.deep.equal([
        'gateway.config.yml:34:11: offerings.tiny.model: model "huge" does not exist',
      ]);
    });
  });

  describe('a configuration with one mistake', () => {
    for (const [what, from, to, problem] of WRONG) {
      it(`reports file, line and column for ${what}`, () => expect(problemsOf(changed(from, to))).to.include(problem));
    }
  });

  it('reports one problem for one mistake', () => {
    const alone = WRONG.filter(([what]) => !/wrong order|misspelt section|host name|not declared/.test(what));
    for (const [what, from, to, problem] of alone) {
      const others = problemsOf(changed(from, to)).filter((each) => each !== problem);
      // A mistake in a shared declaration is an error in both pipelines.
      expect(others, what).to.deep.equal([]);
    }
  });

  it('reports all its problems at once, of whatever kind', () => {
    const text = SOUND.replace('http: { port: 8080 }', 'http:\n  port: ${NO_SUCH_PORT}')
      .replace('methods: [POST] }\n  fast', 'methods: [PUSH] }\n  fast')
      .replace('[/fast/v1/messages]', '[/fast/v1/*]')
      .replace('adapter: sample-messages', 'adapter: sample-nothing\n    tier: best')
      .replace('        context: 200000\n', '')
      .replace('- what:\n      - where: [{ action: { strategy: quality', '- where: [{ action: { stratgy: quality')
      .replace('policies: [who', 'pipelinez: 1\npolicies: [who, weather');
    // The list of known adapters depends on which other test files are loaded.
    const said = problemsOf(text).map((line) =>
      line
        .replace(/^gateway\.config\.yml:\d+:\d+: /, '')
        .replace(/known: .*(sample-chat, sample-embeddings, sample-messages).*/, 'known: $1'),
    );
    expect(said).to.have.members([
      'the environment variable NO_SUCH_PORT is not set; set it, or give a default with ${NO_SUCH_PORT:-default}',
      'pipelinez: unknown setting "pipelinez"; did you mean "pipelines"?',
      'apiEndpoints.main.methods[0]: expected one of GET, HEAD, POST, PUT, PATCH, DELETE; did you mean "POST"?',
      'serviceEndpoints.acme.tier: expected one of official, high-sla, standard; known: official, high-sla, standard',
      'serviceEndpoints.acme.models.large-4.5: "context" is missing',
      'policies[1]: policy "weather" does not exist; known: who, what, where, reply',
      'apiEndpoints.fast.paths[0]: no request can match "/fast/v1/*": paths are compared literally, and "*" cannot be part of one',
      'pipelines.normal.policies[1]: "where" in pipeline "normal" needs `request` of the call, which no earlier policy provides: put "what" before it',
      'pipelines.normal.policies[1].where[0].action.stratgy: unknown setting "stratgy"; did you mean "strategy"?',
      'serviceEndpoints.acme.adapter: adapter "sample-nothing" does not exist; known: sample-chat, sample-embeddings, sample-messages',
    ]);
  });

  it('reports how many required members a nearly empty file lacks', () => {
    expect(problemsOf('http: { port: 1 }\n')).to.have.members(
      ['admin', 'apiEndpoints', 'serviceEndpoints', 'policies', 'pipelines'].map(
        (key) => `gateway.config.yml:1:1: "${key}" is missing`,
      ),
    );
    expect(problemsOf('- a list\n')).to.include('gateway.config.yml:1:1: expected object, not an array');
  });

  it('never shows a secret that is in the wrong setting', () => {
    const misplaced: readonly (readonly [string, string])[] = [
      ['credential: { env: ACME_KEY }', 'credential: ${ACME_KEY}'],
      ['https://api.acme.example/base', 'https://user:${ACME_KEY}@'],
      ['{ port: 9876 }', '{ port: "${ACME_KEY}" }'],
      ['{ strategy: quality }', '{ strategy: "${ACME_KEY}" }'],
      ['adapter: sample-messages', 'adapter: sample-messages\n    weight: ${ACME_KEY}'],
      ['adapter: sample-messages', 'adapter: sample-messages\n    timeouts: { idle: "${ACME_KEY}" }'],
    ];
    for (const [from, to] of misplaced) {
      for (const problem of problemsOf(changed(from, to), { ACME_KEY: 'hush-hush' }))
        expect(problem).not.to.contain('hush');
    }
  });

  describe('the configuration of the system (system.config.yml)', () => {
    const system = (text: string) => readSystemSettings(temporaryFolder({ 'system.config.yml': text }), {}).settings;

    it('lists the plugins to load, and each plugin checks its own settings', () => {
      const settings = system('plugins:\n  usage: { package: ./usage, days: 5 }\n');
      expect(settings.plugins['usage']).to.deep.equal({ package: './usage', days: 5 });
      expect(settings.fastLane).to.equal(true);
    });

    it('is refused if a plugin has no package or if a name is unknown', () => {
      expect(() => system('plugins:\n  usage: {}\nfastlane: false\n')).to.throw(
        ConfigurationError,
        /system\.config\.yml:3:1: fastlane: unknown setting "fastlane"; did you mean "fastLane"\?\n?[\s\S]*system\.config\.yml:2:3: plugins\.usage: "package" is missing/,
      );
    });
  });
});
