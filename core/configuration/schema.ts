import { duration, flag, group, integer, list, map, number, text, word } from '../base/setting-schemas';
import type { Settings } from '../base/settings';
import { DETAILS, NORMALIZING, TRANSLATE, UNPRICED_TOOLS } from '../catalog/catalog';
import { MEDIA, UNKNOWN } from '../catalog/facts';
import { PROTOCOL_NAMES } from '../catalog/protocols';
import { REASONING_SETTINGS } from '../catalog/upstream';
import { byMeter } from '../catalog/usage';
import { LEASE_SECONDS } from '../ledger/lease-times';

/** The schema of rates in decimal USD per million tokens. Numbers are exact up to 8 decimals. */
const PRICE_PARTS = byMeter(({ description }) => ({ description, type: ['number', 'string'] }) as const);

const ABOVE = group(
  'The prices of a pass once its input has more than `tokens` tokens.',
  {
    tokens: integer('Tokens of input, cache included.', { minimum: 1 }),
    ...PRICE_PARTS,
  },
  { required: ['tokens', 'input', 'output'] },
);

/** Returns the schema of the prices of tiers, speeds or regions. Its keys are the names that answers use. */
function variants(what: string) {
  return map(
    `Prices of answers that come with another ${what} than the plain price is for: a factor, or prices of their own.`,
    {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        factor: { description: 'Factor for every price.', type: ['number', 'string'] },
        ...PRICE_PARTS,
        above: ABOVE,
      },
      dependencies: Object.fromEntries(
        [...Object.keys(PRICE_PARTS), 'above'].map((part) => [part, ['input', 'output']]),
      ),
    },
    { maxProperties: 8 },
  );
}

const SOURCE = text('Where it was read, such as the address of a page.', { minLength: 1 });
const DAY = { pattern: '^\\d{4}-\\d{2}-\\d{2}$', 'x-expected': 'a day such as 2026-03-05' } as const;
const REGION = {
  pattern: '^[a-z][a-z0-9-]*$',
  'x-expected': 'a region in lower case, such as eu or us-east-1',
} as const;

const NAMES = { type: 'array', items: { type: 'string', minLength: 1 }, uniqueItems: true, default: [] } as const;

/** The schema of a model's price. */
const PRICE = group(
  'What its tokens cost.',
  {
    ...PRICE_PARTS,
    above: ABOVE,
    pieces: map('USD for each piece, such as `webSearch: 0.01`.', {
      description: 'Decimal USD for each.',
      type: ['number', 'string'],
    }),
    tiers: variants('service tier'),
    speeds: variants('speed'),
    geos: variants('region'),
    source: text('Where the price was read, such as `litellm`; without it, it was written by hand.', { minLength: 1 }),
    date: text('The day on which the source said so.', DAY),
  },
  { required: ['input', 'output'] },
);

/** The schema of what is declared of a model at an upstream beside its price. */
const FACTS = group(
  'What is known of a model beside its price. A fact that is absent is unknown, and satisfies no demand of a call.',
  {
    region: {
      description: 'The region in which calls are processed, or all of them.',
      type: ['string', 'array'],
      ...REGION,
      items: { type: 'string', ...REGION },
      minItems: 1,
      uniqueItems: true,
    },
    retention: {
      description: 'For how many days the vendor keeps what it was sent; `none` for not at all, `unknown`.',
      type: ['integer', 'string'],
      minimum: 0,
      pattern: '^(none|unknown)$',
      'x-expected': 'none, a number of days, or unknown',
    },
    trains: word('Whether the vendor trains models with what it was sent.', ['no', 'yes', UNKNOWN]),
    inputs: list('What it reads.', { enum: MEDIA }, { uniqueItems: true }),
    outputs: list('What it writes.', { enum: MEDIA }, { uniqueItems: true }),
    tools: flag('Whether it calls tools.'),
    structuredOutputs: flag('Whether its answers can follow a schema.'),
    reasoning: flag('Whether it reasons before it answers.'),
    released: text('The day of its release.', DAY),
    retires: text(
      'The day from which the vendor serves it no more. Within 30 days of it, `config validate` warns.',
      DAY,
    ),
    source: SOURCE,
    date: text('The day on which the source said so.', DAY),
  },
);

const MODEL = {
  type: 'object',
  additionalProperties: false,
  required: ['price', 'context', 'maxOutput'],
  properties: {
    aliases: list(
      'Other names clients may use for it.',
      { type: 'string', minLength: 1 },
      { uniqueItems: true, default: [] },
    ),
    from: text(
      'The price list (`anthropic`, `openai`, `google`), or `list/model`, for the values of context, maxOutput, price and created that are not set here.',
      { minLength: 1 },
    ),
    created: text('The day of its release, as 2026-03-05; shown by GET /v1/models.', {
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
    }),
    context: integer('Tokens of input and output together.', { minimum: 1 }),
    maxOutput: integer(
      'The most output tokens of one answer; 0 for a model of embeddings, which is served in that protocol alone.',
      { minimum: 0 },
    ),
    protocols: list(
      "The protocols in which it is served; default: all that the upstream's adapters speak.",
      { enum: PROTOCOL_NAMES },
      { minItems: 1, uniqueItems: true },
    ),
    translate: word("Whether calls of another protocol are translated for it; default: the upstream's.", TRANSLATE),
    reasoning: word(
      'How translated calls pass on the effort of reasoning: by a word (`effort`) or by a number of tokens (`budget`). Default: not at all.',
      REASONING_SETTINGS,
    ),
    estimatedMaxTokens: integer(
      'Output tokens expected of a call that names no limit, for the strategy `cost`; default: 4096, at most maxOutput.',
      { minimum: 0 },
    ),
    bounds: group(
      'The most tokens of content that the vendor fetches or unpacks. Without a limit the whole context is held.',
      {
        imageByUrl: integer('Tokens of one image by URL.', { minimum: 1 }),
        documentByUrl: integer('Tokens of one document by URL, in base64 or by file_id.', { minimum: 1 }),
      },
      { default: {} },
    ),
    imageTokens: {
      description:
        'The most tokens of one image whose data is in the request, or these by its `detail`, such as `{ low: 85, high: 1445 }`.',
      type: ['integer', 'object'],
      minimum: 1,
      minProperties: 1,
      propertyNames: { enum: DETAILS },
      additionalProperties: integer('Tokens of one image of this detail.', { minimum: 1 }),
      default: 1_600,
    },
    tokenizerFactor: number('Tokens that its tokenizer makes at most of one byte of text.', { minimum: 1, default: 1 }),
    normalizes: word(
      'How its tokenizer changes text first: `nfkc`, which makes some characters longer, or `none`. Default: `none` where it is asked by Chat, Responses or Embeddings, else `nfkc`.',
      NORMALIZING,
    ),
    toolOverheadTokens: integer(
      'Tokens that the vendor adds to a call with tools, and for each tool that it defines itself.',
      { minimum: 0, default: 1_000 },
    ),
    toolUses: map(
      'How often a call may use a tool that runs at the vendor where it has no `max_uses`, such as `webSearch: 3`; default 1. It is held, and written into the forwarded body.',
      integer('Uses of one call.', { minimum: 0, maximum: 1_000 }),
    ),
    price: PRICE,
    facts: { ...FACTS, description: "What is known of it beside its price; these come before the upstream's `facts`." },
    mayAnswerWith: group(
      'What answers may come with although the call asks for nothing. Holds are priced at the dearest of them.',
      {
        tiers: { ...NAMES, description: 'Service tiers.' },
        speeds: { ...NAMES, description: 'Speeds.' },
        geos: { ...NAMES, description: 'Regions.' },
      },
      { default: {} },
    ),
  },
} as const;

const SECRET_PLACES = {
  env: text('The environment variable that holds it.', {
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    'x-expected': 'the name of an environment variable, not its value',
  }),
  file: text("A file that holds it, within CREDENTIALS_DIR and relative to it; default: the configuration's folder.", {
    minLength: 1,
  }),
} as const;

/** The schema of the setting that says where a secret is stored. The configuration itself never contains the secret. */
const SECRET = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  properties: SECRET_PLACES,
} as const;

/** The schema of a credential's source: env, file, command, cloud or none. */
const CREDENTIAL = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...SECRET_PLACES,
    command: list(
      'A program in the folder of credentials and its arguments, run without a shell: what it prints is the credential.',
      { type: 'string' },
      { minItems: 1 },
    ),
    cloud: word('The identity of the gateway in the cloud that runs it.', ['aws', 'google']),
    none: { description: 'The upstream asks for no credential.', const: true },
    refreshEvery: duration(
      'How often `command` or `cloud` is fetched again; earlier if the credential expires earlier. Default: 10m.',
    ),
    name: text('Its name in records, logs and lists; default: its source, such as `env NAME`.', {
      minLength: 1,
      maxLength: 100,
    }),
    weight: number("Its share of the calls among the upstream's credentials; default: 1.", { exclusiveMinimum: 0 }),
  },
} as const;

const REPORTING = group(
  "The vendor's own reports of usage and cost, which are compared with the usage records.",
  {
    credential: {
      ...SECRET,
      description: "The source of the key for the vendor's admin API; no report is read while it is unset or empty.",
    },
    vendor: word(
      'The vendor of the reports; default: `anthropic` for the adapter `messages`, `openai` for `chat` and `embeddings`.',
      ['anthropic', 'openai'],
    ),
    url: text("The base address of the vendor's admin API; default: the upstream's `url`.", { pattern: '^https?://' }),
    apiKeyId: text("The vendor's id of the upstream's `credential`: only its usage is compared. Default: all keys.", {
      minLength: 1,
    }),
    workspaceId: text(
      'The workspace (Anthropic; `default` for the default one) or project (OpenAI) whose costs are compared. Default: all.',
      { minLength: 1 },
    ),
    alarmAboveUsd: {
      description: 'A larger difference on one day raises an alarm.',
      type: ['number', 'string'],
      default: 1,
    },
  },
  { required: ['credential'] },
);

const SERVICE_ENDPOINT = {
  type: 'object',
  additionalProperties: false,
  required: ['url', 'adapter', 'models'],
  properties: {
    url: text("The upstream's base address; the adapter adds the protocol's path.", { pattern: '^https?://' }),
    adapter: {
      description: 'A registered adapter, or one per protocol it speaks.',
      type: ['string', 'array'],
      items: { type: 'string' },
      minItems: 1,
      uniqueItems: true,
    },
    adapterSettings: { description: "The adapter's own settings.", type: 'object' },
    credential: {
      ...CREDENTIAL,
      description:
        "The source of the platform's key for this upstream; the upstream is disabled while it is unset or empty.",
    },
    credentials: list(
      'Several credentials instead of one. A rejected or rate limited one rests while the others are used.',
      CREDENTIAL,
      { minItems: 1, maxItems: 100 },
    ),
    reporting: REPORTING,
    tier: word(
      'Quality of the upstream; the strategy `quality` prefers the first value.',
      ['official', 'high-sla', 'standard'],
      { default: 'standard' },
    ),
    weight: number('Its share of the calls among equals.', { exclusiveMinimum: 0, default: 1 }),
    maxConcurrent: integer('Concurrent calls to the upstream from one process; default: no limit.', { minimum: 1 }),
    allowPrivate: flag('Allows a private address.', { default: false }),
    timeouts: group(
      'Timeouts of the upstream.',
      {
        connect: duration('For a connection; at most 120s.', { default: '120s' }),
        headers: duration('For the head of the answer; at most 120s.', { default: '120s' }),
        firstToken: duration('For the first content of a stream; default: no limit.'),
        idle: duration('Between two bytes of an answer.', { default: '300s' }),
        answer: duration(
          "For the head of an unstreamed answer that may be so long that the model's mean speed explains more than `headers`.",
          { default: '600s' },
        ),
      },
      { default: {} },
    ),
    ignoreUsage: {
      ...NAMES,
      description: 'Paths of numbers in its usage reports, such as `queue_time`, that cost nothing and raise no alarm.',
    },
    streamUsage: flag('It understands stream_options.include_usage.', { default: true }),
    translate: word(
      'Whether calls of another protocol are translated for it: `last` after all upstreams that speak the protocol, `equal` like those, or `never`.',
      TRANSLATE,
      { default: 'last' },
    ),
    webSocket: flag(
      'The upstream accepts `response.create` over a WebSocket at its Responses address. Otherwise the gateway sends each one as a POST.',
      { default: false },
    ),
    traceContext: flag('With tracing on, the gateway sends `traceparent` and `tracestate` of the call.', {
      default: true,
    }),
    versions: list(
      'Versions of the Messages protocol (`anthropic-version`) that it accepts; calls of other versions go elsewhere. Default: all.',
      { type: 'string', minLength: 1 },
      { minItems: 1, uniqueItems: true },
    ),
    stopsOnCancel: flag(
      'The upstream stops and charges no more when a call is cancelled. `false`: if a client disconnects, its stream is read to the end, for 15 minutes at most. Default: such a stream is read for 10 s and then cancelled.',
    ),
    isolateCaches: flag(
      'Calls of Chat and Responses without `prompt_cache_key` get one of their account, so that no account learns from the cache what another one sent. Prompts that accounts share are then cached for each.',
      { default: false },
    ),
    unpricedTools: word(
      'Whether calls are forwarded to it that offer tools, or have members, for which its models have no price. Nothing is held for them, and the platform pays what is used; `refuse` answers 400. Default: as `forward`, with a warning of `config validate`.',
      UNPRICED_TOOLS,
    ),
    freeMembers: list(
      'Members of requests that the gateway does not know and that cost nothing at this upstream.',
      { type: 'string', minLength: 1 },
      { uniqueItems: true, default: [] },
    ),
    facts: { ...FACTS, description: 'What is known of all its models beside their price.' },
    models: map("What it serves, by the upstream's own names.", MODEL, { minProperties: 1 }),
  },
} as const;

/** The schema of prices that customers pay, if they differ from what the upstream charges. */
const CUSTOMER_PRICES = map(
  'Prices of your own, by a name that accounts and keys have as their `markup`.',
  {
    type: 'object',
    additionalProperties: false,
    properties: {
      factor: {
        description: "Factor from 0.1 to 100 on the upstream's price, for models that this list does not name.",
        type: ['number', 'string'],
        default: 1,
      },
      models: map(
        'By the name or an alias of the model.',
        {
          type: 'object',
          additionalProperties: false,
          required: ['price'],
          properties: { price: PRICE },
        },
        { default: {} },
      ),
    },
  },
  { propertyNames: { pattern: '^[a-z][a-z0-9-]{0,63}$' } },
);

const API_ENDPOINT = group(
  'An address at which calls of one pipeline arrive.',
  {
    host: text('Only calls to this host; `*` stands for one label of it. Default: any.', { minLength: 1 }),
    paths: list('Compared literally.', { type: 'string', pattern: '^/' }, { minItems: 1, uniqueItems: true }),
    methods: list(
      'Default: any.',
      { enum: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] },
      { minItems: 1, uniqueItems: true },
    ),
  },
  { required: ['paths'] },
);

const PORT = integer('Its port; 0 for any that is free.', { minimum: 0, maximum: 65_535 });

const CERTIFICATE = {
  type: 'object',
  additionalProperties: false,
  required: ['key', 'cert'],
  properties: {
    key: text("The file of the private key in PEM; relative to the configuration's folder.", { minLength: 1 }),
    cert: text('The file of the certificate in PEM, followed by those between it and the root.', { minLength: 1 }),
  },
} as const;

const TLS = map(
  'Certificates by the host that clients ask for: a name, or `*.` and a domain; `default` for all others. They are read again when a file changes.',
  CERTIFICATE,
  {
    minProperties: 1,
    propertyNames: {
      pattern: '^(default|(\\*\\.)?[a-z0-9-]+(\\.[a-z0-9-]+)*)$',
      'x-expected': 'default, a host such as api.example.com, or *.example.com',
    },
  },
);

export const GATEWAY_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['http', 'admin', 'apiEndpoints', 'serviceEndpoints', 'policies', 'pipelines'],
  properties: {
    customerPrices: CUSTOMER_PRICES,
    http: group(
      'The public listener.',
      {
        port: PORT,
        hostname: text('The address it listens at; 0.0.0.0 for all.', { default: '127.0.0.1' }),
      },
      { required: ['port'] },
    ),
    https: group(
      'The public listener with TLS, instead of `http`.',
      {
        port: PORT,
        hostname: text('The address it listens at; 0.0.0.0 for all.', { default: '127.0.0.1' }),
        tls: TLS,
      },
      { required: ['port', 'tls'] },
    ),
    admin: group(
      "The operator's listener; every request needs an operator token.",
      {
        port: PORT,
        host: text('The address it listens at.', { default: '127.0.0.1' }),
        tls: { ...TLS, description: `With TLS. ${TLS.description}` },
      },
      { required: ['port'] },
    ),
    apiEndpoints: map('The addresses at which calls arrive, by name.', API_ENDPOINT, { minProperties: 1 }),
    serviceEndpoints: map('The upstreams, by the names that headers and usage records show.', SERVICE_ENDPOINT, {
      propertyNames: { pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' },
    }),
    policies: list('The policies that pipelines may use.', { type: 'string' }, { minItems: 1, uniqueItems: true }),
    pipelines: map(
      'The pipelines, by name: what happens to a call.',
      {
        type: 'object',
        additionalProperties: false,
        required: ['apiEndpoints', 'policies'],
        properties: {
          apiEndpoints: list(
            'The endpoints of the pipeline; each endpoint belongs to one pipeline.',
            { type: 'string' },
            { minItems: 1, uniqueItems: true },
          ),
          policies: list(
            'Its policies in order, each with its settings.',
            {
              type: 'object',
              minProperties: 1,
              maxProperties: 1,
              additionalProperties: {
                type: ['array', 'null'],
                maxItems: 1,
                items: {
                  type: 'object',
                  additionalProperties: false,
                  properties: { action: { type: 'object' } },
                },
              },
            },
            { minItems: 1 },
          ),
        },
      },
      { minProperties: 1 },
    ),
  },
} as const;

export const SYSTEM_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['plugins'],
  properties: {
    db: {
      description: "Express Gateway's own store, which Tollgate does not use.",
      type: 'object',
      default: { redis: { emulate: true, namespace: 'EG' } },
    },
    fastLane: flag("Calls of pipelines made of Tollgate's own policies are served without going through Express.", {
      default: true,
    }),
    maxVendorResources: integer(
      'Objects of one account at vendors (threads, containers, responses) that are remembered. The oldest are dropped within an hour.',
      { minimum: 1, default: 100_000 },
    ),
    ejection: group(
      'When a failing upstream is ejected, and for how long.',
      {
        consecutiveFailures: integer('Consecutive failures that eject an upstream.', { minimum: 1, default: 5 }),
        baseTime: duration('Duration of the first ejection; the nth lasts n times as long.', { default: '30s' }),
        maxTime: duration('Longest ejection.', { default: '5m' }),
      },
      { default: {} },
    ),
    keys: group(
      'How many API keys an account may make, and how often a key may ask the API beside model calls.',
      {
        madePerDay: integer('Keys and new secrets that an account may make within a day, at any pace.', {
          minimum: 0,
          maximum: 1_000_000,
          default: 200,
        }),
        madePerHour: integer('Keys and new secrets that it may make within an hour after those.', {
          minimum: 0,
          maximum: 1_000_000,
          default: 60,
        }),
        maxKeys: integer('Keys of an account that are not revoked. Default: any number.', { minimum: 1 }),
        requestsPerMinute: integer(
          'Requests of one key to the API beside model calls: sandboxes, quotes, usage, balance, responses.',
          { minimum: 1, maximum: 1_000_000, default: 600 },
        ),
      },
      { default: {} },
    ),
    webhooks: group(
      'Where the events of accounts are delivered.',
      {
        allowPrivate: flag(
          'Webhooks may have plain HTTP and addresses that are not public. Account owners choose the URLs, so this opens your network to them.',
          { default: false },
        ),
      },
      { default: {} },
    ),
    excess: group(
      'How to treat keys and accounts whose requests cost more than their holds.',
      {
        stopKeyAboveUsd: number(
          'A key is revoked when these costs exceed this many USD. An account is frozen when its own exceed ten times as much since it was last unfrozen.',
          { minimum: 0, maximum: 9_000_000, default: 5 },
        ),
      },
      { default: {} },
    ),
    ledger: group(
      'When holds expire, and how durable acknowledged writes are.',
      {
        leaseSeconds: integer(
          'Time after which the holds of a dead process are released. Renewals, retries of settles and the spool depend on it. A process that is paused for longer loses the cost of its open calls.',
          { minimum: LEASE_SECONDS.least, maximum: LEASE_SECONDS.most, default: LEASE_SECONDS.usual },
        ),
        allowances: flag(
          'Whether this process holds money of busy keys in advance and serves their calls from memory. With false each call asks Redis twice. The embedded ledger ignores it.',
          { default: true },
        ),
        waitReplicas: integer(
          'Number of Redis replicas that must acknowledge a write of the ledger before the caller gets an answer (WAIT); 0 waits for none. Not with a Cluster.',
          { minimum: 0, maximum: 5, default: 0 },
        ),
        waitTimeoutMs: integer('How long to wait for the replicas.', { minimum: 10, maximum: 120, default: 100 }),
        onTooFew: word(
          '`refuse`: the call gets 503, and settles are retried until the replicas acknowledge them. `warn`: the call continues, and the log and a metric report it.',
          ['refuse', 'warn'],
          { default: 'refuse' },
        ),
      },
      { default: {} },
    ),
    stepTimeout: duration(
      'A call fails with 500 if a policy takes longer for its step. For policies without a timeout of their own.',
      { default: '30s' },
    ),
    connections: group(
      'How many connections each listener accepts; it closes further ones at once.',
      {
        max: integer('In all.', { minimum: 1, default: 10_000 }),
        maxPerAddress: integer('Of one IPv4 address, or of one /64 of IPv6.', { minimum: 1, default: 1_000 }),
      },
      { default: {} },
    ),
    proxies: group(
      'Your own proxies and load balancers in front of the public listener.',
      {
        count: integer('How many proxies are in a row, each of which adds an address to X-Forwarded-For.', {
          minimum: 0,
          maximum: 10,
          default: 0,
        }),
        addresses: list(
          'Addresses and ranges of these proxies. The gateway trusts X-Forwarded-For only from them, and `connections.maxPerAddress` does not apply to them. Default: loopback and private ranges with a `count` above 0, else none.',
          {
            type: 'string',
            pattern: '^[0-9A-Fa-f.:]{2,45}(/[0-9]{1,3})?$',
            'x-expected': 'an address, or a range such as 10.0.0.0/8',
          },
        ),
      },
      { default: {} },
    ),
    cors: group(
      'Which web pages may call the API of the public listener from a browser. Default: none of another origin.',
      {
        origins: list(
          'Origins as browsers write them, such as `https://app.example.com`: lower case, no path, and a port only if it is not the default one. `*` allows every page.',
          {
            type: 'string',
            pattern: '^(\\*|(?!http://[^:]*:80$|https://[^:]*:443$)[a-z][a-z0-9+.-]*://[^/?#@*\\sA-Z]+)$',
            'x-expected': 'an origin such as https://app.example.com, or *',
          },
          { minItems: 1 },
        ),
      },
      { required: ['origins'] },
    ),
    answerStore: group(
      'Keeps unstreamed answers of calls with an Idempotency-Key in the memory of the process that gave them, for clients that repeat the call. Answers are content: see docs/security.md. Default: off.',
      {
        maxBytes: integer('Memory for all kept answers of a process; the oldest are dropped first.', {
          minimum: 1_048_576,
          default: 67_108_864,
        }),
        maxAge: duration('How long an answer is kept.', { default: '10m' }),
      },
    ),
    clientIdle: duration('A client that reads nothing of its answer for this long is treated as disconnected.', {
      default: '10m',
    }),
    webSockets: group(
      'Limits for WebSockets of clients, which carry Responses calls.',
      {
        maxPerKey: integer('Open WebSockets of one key in one process.', { minimum: 1, default: 8 }),
        maxFrameBytes: integer('A larger frame closes its WebSocket (1009).', {
          minimum: 1_024,
          maximum: 20_971_520,
          default: 20_971_520,
        }),
        idle: duration('A WebSocket without a frame and without a running response is closed after this time.', {
          default: '5m',
        }),
        life: duration('Lifetime of a WebSocket; a running response finishes first.', { default: '60m' }),
      },
      { default: {} },
    ),
    shutdownGrace: duration(
      'How long running calls may finish when the process stops or has failed; then they are ended.',
      { default: '25s' },
    ),
    config: group(
      'The source of the configuration of calls.',
      {
        source: word(
          'file: gateway.config.yml beside this file, on every node. database: revisions that are applied through the admin listener and that every node follows; the file is only the first of them.',
          ['file', 'database'],
          { default: 'file' },
        ),
      },
      { default: {} },
    ),
    log: group(
      'What the log contains in addition to warnings and errors.',
      {
        calls: number(
          'Share of calls and of requests of our own API that are logged at level info; failed ones are always logged. 0 logs none.',
          { minimum: 0, maximum: 1, default: 1 },
        ),
      },
      { default: {} },
    ),
    metrics: group(
      'What `GET /metrics` of the admin listener shows.',
      {
        accounts: integer(
          'How many accounts have their own series: those that spend most. `other` sums up all other accounts.',
          { minimum: 0, maximum: 1_000, default: 50 },
        ),
      },
      { default: {} },
    ),
    watchConfig: flag(
      'Reloads gateway.config.yml when it changes; a file with errors is rejected, and the log says why.',
      { default: true },
    ),
    plugins: map(
      'The plugins to load, each with its settings.',
      {
        type: 'object',
        required: ['package'],
        properties: {
          package: text('Module to load; absolute, or installed beside Tollgate.'),
        },
      },
      { minProperties: 1 },
    ),
  },
} as const;

export type GatewaySettings = Settings<typeof GATEWAY_SCHEMA>;
export type ServiceEndpointSettings = Settings<typeof SERVICE_ENDPOINT>;
/** The certificates of a listener, by the requested host name. */
export type TlsSettings = Settings<typeof TLS>;
export type ModelSettings = Settings<typeof MODEL>;
export type FactSettings = Settings<typeof FACTS>;
export type SystemSettings = Settings<typeof SYSTEM_SCHEMA>;
