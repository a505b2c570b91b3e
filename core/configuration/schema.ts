import { DETAILS, NORMALIZING, TRANSLATE, UNPRICED_TOOLS } from '../catalog/catalog';
import { PROTOCOL_NAMES } from '../catalog/protocols';
import { REASONING_SETTINGS } from '../catalog/upstream';
import { byMeter } from '../catalog/usage';
import { LEASE_SECONDS } from '../ledger/lease-times';
import { DURATION, type Settings } from '../settings';

/** The schema of rates in decimal USD per million tokens. Numbers are exact up to 8 decimals. */
const PRICE_PARTS = byMeter(({ description }) => ({ description, type: ['number', 'string'] }) as const);

const ABOVE = {
  description: 'The prices of a pass once its input has more than `tokens` tokens.',
  type: 'object',
  additionalProperties: false,
  required: ['tokens', 'input', 'output'],
  properties: {
    tokens: { description: 'Tokens of input, cache included.', type: 'integer', minimum: 1 },
    ...PRICE_PARTS,
  },
} as const;

/** Returns the schema of prices of tiers, speeds or regions, by the name that answers use. */
function variants(what: string) {
  return {
    description: `Prices of answers that come with another ${what} than the plain price is for: a factor, or prices of their own.`,
    type: 'object',
    maxProperties: 8,
    additionalProperties: {
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
  } as const;
}

const NAMES = { type: 'array', items: { type: 'string', minLength: 1 }, uniqueItems: true, default: [] } as const;

/** The price of a model. */
const PRICE = {
  description: 'What its tokens cost.',
  type: 'object',
  additionalProperties: false,
  required: ['input', 'output'],
  properties: {
    ...PRICE_PARTS,
    above: ABOVE,
    pieces: {
      description: 'USD for each piece, such as `webSearch: 0.01`.',
      type: 'object',
      additionalProperties: { description: 'Decimal USD for each.', type: ['number', 'string'] },
    },
    tiers: variants('service tier'),
    speeds: variants('speed'),
    geos: variants('region'),
  },
} as const;

const MODEL = {
  type: 'object',
  additionalProperties: false,
  required: ['price', 'context', 'maxOutput'],
  properties: {
    aliases: {
      description: 'Other names clients may use for it.',
      type: 'array',
      items: { type: 'string', minLength: 1 },
      uniqueItems: true,
      default: [],
    },
    from: {
      description:
        'The price list (`anthropic`, `openai`, `google`), or `list/model`, for the values of context, maxOutput, price and created that are not set here.',
      type: 'string',
      minLength: 1,
    },
    created: {
      description: 'The day of its release, as 2026-03-05; shown by GET /v1/models.',
      type: 'string',
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
    },
    context: { description: 'Tokens of input and output together.', type: 'integer', minimum: 1 },
    maxOutput: {
      description:
        'The most output tokens of one answer; 0 for a model of embeddings, which is served in that protocol alone.',
      type: 'integer',
      minimum: 0,
    },
    protocols: {
      description: "The protocols in which it is served; default: all that the upstream's adapters speak.",
      type: 'array',
      items: { enum: PROTOCOL_NAMES },
      minItems: 1,
      uniqueItems: true,
    },
    translate: {
      description: "Whether calls of another protocol are translated for it; default: the upstream's.",
      enum: TRANSLATE,
    },
    reasoning: {
      description:
        'How translated calls pass on the effort of reasoning: by a word (`effort`) or by a number of tokens (`budget`). Default: not at all.',
      enum: REASONING_SETTINGS,
    },
    estimatedMaxTokens: {
      description:
        'Output tokens expected of a call that names no limit, for the strategy `cost`; default: 4096, at most maxOutput.',
      type: 'integer',
      minimum: 0,
    },
    bounds: {
      description:
        'The most tokens of content that the vendor fetches or unpacks. Without a limit the whole context is held.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        imageByUrl: { description: 'Tokens of one image by URL.', type: 'integer', minimum: 1 },
        documentByUrl: {
          description: 'Tokens of one document by URL, in base64 or by file_id.',
          type: 'integer',
          minimum: 1,
        },
      },
    },
    imageTokens: {
      description:
        'The most tokens of one image whose data is in the request, or these by its `detail`, such as `{ low: 85, high: 1445 }`.',
      type: ['integer', 'object'],
      minimum: 1,
      minProperties: 1,
      propertyNames: { enum: DETAILS },
      additionalProperties: { description: 'Tokens of one image of this detail.', type: 'integer', minimum: 1 },
      default: 1_600,
    },
    tokenizerFactor: {
      description: 'Tokens that its tokenizer makes at most of one byte of text.',
      type: 'number',
      minimum: 1,
      default: 1,
    },
    normalizes: {
      description:
        'How its tokenizer changes text first: `nfkc`, which makes some characters longer, or `none`. Default: `none` where it is asked by Chat, Responses or Embeddings, else `nfkc`.',
      enum: NORMALIZING,
    },
    toolOverheadTokens: {
      description: 'Tokens that the vendor adds to a call with tools, and for each tool that it defines itself.',
      type: 'integer',
      minimum: 0,
      default: 1_000,
    },
    toolUses: {
      description:
        'How often a call may use a tool that runs at the vendor where it has no `max_uses`, such as `webSearch: 3`; default 1. It is held, and written into the forwarded body.',
      type: 'object',
      additionalProperties: { description: 'Uses of one call.', type: 'integer', minimum: 0, maximum: 1_000 },
    },
    price: PRICE,
    mayAnswerWith: {
      description:
        'What answers may come with although the call asks for nothing. Holds are priced at the dearest of them.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        tiers: { ...NAMES, description: 'Service tiers.' },
        speeds: { ...NAMES, description: 'Speeds.' },
        geos: { ...NAMES, description: 'Regions.' },
      },
    },
  },
} as const;

const SECRET_PLACES = {
  env: {
    description: 'The environment variable that holds it.',
    type: 'string',
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    'x-expected': 'the name of an environment variable, not its value',
  },
  file: {
    description:
      "A file that holds it, within CREDENTIALS_DIR and relative to it; default: the configuration's folder.",
    type: 'string',
    minLength: 1,
  },
} as const;

/** The place of a secret. The configuration itself never has the secret. */
const SECRET = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  properties: SECRET_PLACES,
} as const;

/** The source of a credential: env, file, command, cloud or none. */
const CREDENTIAL = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...SECRET_PLACES,
    command: {
      description:
        'A program in the folder of credentials and its arguments, run without a shell: what it prints is the credential.',
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
    },
    cloud: {
      description: 'The identity of the gateway in the cloud that runs it.',
      enum: ['aws', 'google'],
    },
    none: { description: 'The upstream asks for no credential.', const: true },
    refreshEvery: {
      ...DURATION,
      description:
        'How often `command` or `cloud` is fetched again; earlier if the credential expires earlier. Default: 10m.',
    },
    name: {
      description: 'Its name in records, logs and lists; default: its source, such as `env NAME`.',
      type: 'string',
      minLength: 1,
      maxLength: 100,
    },
    weight: {
      description: "Its share of the calls among the upstream's credentials; default: 1.",
      type: 'number',
      exclusiveMinimum: 0,
    },
  },
} as const;

const REPORTING = {
  description: "The vendor's own reports of usage and cost, which are compared with the usage records.",
  type: 'object',
  additionalProperties: false,
  required: ['credential'],
  properties: {
    credential: {
      ...SECRET,
      description: "The source of the key for the vendor's admin API; no report is read while it is unset or empty.",
    },
    vendor: {
      description:
        'The vendor of the reports; default: `anthropic` for the adapter `messages`, `openai` for `chat` and `embeddings`.',
      enum: ['anthropic', 'openai'],
    },
    url: {
      description: "The base address of the vendor's admin API; default: the upstream's `url`.",
      type: 'string',
      pattern: '^https?://',
    },
    apiKeyId: {
      description: "The vendor's id of the upstream's `credential`: only its usage is compared. Default: all keys.",
      type: 'string',
      minLength: 1,
    },
    workspaceId: {
      description:
        'The workspace (Anthropic; `default` for the default one) or project (OpenAI) whose costs are compared. Default: all.',
      type: 'string',
      minLength: 1,
    },
    alarmAboveUsd: {
      description: 'A larger difference on one day raises an alarm.',
      type: ['number', 'string'],
      default: 1,
    },
  },
} as const;

const SERVICE_ENDPOINT = {
  type: 'object',
  additionalProperties: false,
  required: ['url', 'adapter', 'models'],
  properties: {
    url: {
      description: "The upstream's base address; the adapter adds the protocol's path.",
      type: 'string',
      pattern: '^https?://',
    },
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
    credentials: {
      description:
        'Several credentials instead of one. A rejected or rate limited one rests while the others are used.',
      type: 'array',
      items: CREDENTIAL,
      minItems: 1,
      maxItems: 100,
    },
    reporting: REPORTING,
    tier: {
      description: 'Quality of the upstream; the strategy `quality` prefers the first value.',
      enum: ['official', 'high-sla', 'standard'],
      default: 'standard',
    },
    weight: { description: 'Its share of the calls among equals.', type: 'number', exclusiveMinimum: 0, default: 1 },
    maxConcurrent: {
      description: 'Concurrent calls to the upstream from one process; default: no limit.',
      type: 'integer',
      minimum: 1,
    },
    allowPrivate: { description: 'Allows a private address.', type: 'boolean', default: false },
    timeouts: {
      description: 'Timeouts of the upstream.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        connect: { ...DURATION, description: 'For a connection; at most 120s.', default: '120s' },
        headers: { ...DURATION, description: 'For the head of the answer; at most 120s.', default: '120s' },
        firstToken: { ...DURATION, description: 'For the first content of a stream; default: no limit.' },
        idle: { ...DURATION, description: 'Between two bytes of an answer.', default: '300s' },
        answer: {
          ...DURATION,
          description:
            "For the head of an unstreamed answer that may be so long that the model's mean speed explains more than `headers`.",
          default: '600s',
        },
      },
    },
    ignoreUsage: {
      ...NAMES,
      description: 'Paths of numbers in its usage reports, such as `queue_time`, that cost nothing and raise no alarm.',
    },
    streamUsage: { description: 'It understands stream_options.include_usage.', type: 'boolean', default: true },
    translate: {
      description:
        'Whether calls of another protocol are translated for it: `last` after all upstreams that speak the protocol, `equal` like those, or `never`.',
      enum: TRANSLATE,
      default: 'last',
    },
    webSocket: {
      description:
        'The upstream accepts `response.create` over a WebSocket at its Responses address. Otherwise the gateway sends each one as a POST.',
      type: 'boolean',
      default: false,
    },
    traceContext: {
      description: 'With tracing on, the gateway sends `traceparent` and `tracestate` of the call.',
      type: 'boolean',
      default: true,
    },
    versions: {
      description:
        'Versions of the Messages protocol (`anthropic-version`) that it accepts; calls of other versions go elsewhere. Default: all.',
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      uniqueItems: true,
    },
    stopsOnCancel: {
      description:
        'The upstream stops and charges no more when a call is cancelled. `false`: if a client disconnects, its stream is read to the end, for 15 minutes at most. Default: such a stream is read for 10 s and then cancelled.',
      type: 'boolean',
    },
    unpricedTools: {
      description:
        'Whether calls are forwarded to it that offer tools, or have members, for which its models have no price. Nothing is held for them, and the platform pays what is used; `refuse` answers 400. Default: as `forward`, with a warning of `config validate`.',
      enum: UNPRICED_TOOLS,
    },
    freeMembers: {
      description: 'Members of requests that the gateway does not know and that cost nothing at this upstream.',
      type: 'array',
      items: { type: 'string', minLength: 1 },
      uniqueItems: true,
      default: [],
    },
    models: {
      description: "What it serves, by the upstream's own names.",
      type: 'object',
      minProperties: 1,
      additionalProperties: MODEL,
    },
  },
} as const;

/** The prices that customers pay, if they differ from what the upstream charges. */
const CUSTOMER_PRICES = {
  description: 'Prices of your own, by a name that accounts and keys have as their `markup`.',
  type: 'object',
  propertyNames: { pattern: '^[a-z][a-z0-9-]{0,63}$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    properties: {
      factor: {
        description: "Factor from 0.1 to 100 on the upstream's price, for models that this list does not name.",
        type: ['number', 'string'],
        default: 1,
      },
      models: {
        description: 'By the name or an alias of the model.',
        type: 'object',
        default: {},
        additionalProperties: {
          type: 'object',
          additionalProperties: false,
          required: ['price'],
          properties: { price: PRICE },
        },
      },
    },
  },
} as const;

const API_ENDPOINT = {
  description: 'An address at which calls of one pipeline arrive.',
  type: 'object',
  additionalProperties: false,
  required: ['paths'],
  properties: {
    host: {
      description: 'Only calls to this host; `*` stands for one label of it. Default: any.',
      type: 'string',
      minLength: 1,
    },
    paths: {
      description: 'Compared literally.',
      type: 'array',
      items: { type: 'string', pattern: '^/' },
      minItems: 1,
      uniqueItems: true,
    },
    methods: {
      description: 'Default: any.',
      type: 'array',
      items: { enum: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] },
      minItems: 1,
      uniqueItems: true,
    },
  },
} as const;

const PORT = {
  description: 'Its port; 0 for any that is free.',
  type: 'integer',
  minimum: 0,
  maximum: 65_535,
} as const;

const CERTIFICATE = {
  type: 'object',
  additionalProperties: false,
  required: ['key', 'cert'],
  properties: {
    key: {
      description: "The file of the private key in PEM; relative to the configuration's folder.",
      type: 'string',
      minLength: 1,
    },
    cert: {
      description: 'The file of the certificate in PEM, followed by those between it and the root.',
      type: 'string',
      minLength: 1,
    },
  },
} as const;

const TLS = {
  description:
    'Certificates by the host that clients ask for: a name, or `*.` and a domain; `default` for all others. They are read again when a file changes.',
  type: 'object',
  minProperties: 1,
  propertyNames: {
    pattern: '^(default|(\\*\\.)?[a-z0-9-]+(\\.[a-z0-9-]+)*)$',
    'x-expected': 'default, a host such as api.example.com, or *.example.com',
  },
  additionalProperties: CERTIFICATE,
} as const;

export const GATEWAY_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['http', 'admin', 'apiEndpoints', 'serviceEndpoints', 'policies', 'pipelines'],
  properties: {
    customerPrices: CUSTOMER_PRICES,
    http: {
      description: 'The public listener.',
      type: 'object',
      additionalProperties: false,
      required: ['port'],
      properties: {
        port: PORT,
        hostname: { description: 'The address it listens at; 0.0.0.0 for all.', type: 'string', default: '127.0.0.1' },
      },
    },
    https: {
      description: 'The public listener with TLS, instead of `http`.',
      type: 'object',
      additionalProperties: false,
      required: ['port', 'tls'],
      properties: {
        port: PORT,
        hostname: { description: 'The address it listens at; 0.0.0.0 for all.', type: 'string', default: '127.0.0.1' },
        tls: TLS,
      },
    },
    admin: {
      description: "The operator's listener; every request needs an operator token.",
      type: 'object',
      additionalProperties: false,
      required: ['port'],
      properties: {
        port: PORT,
        host: { description: 'The address it listens at.', type: 'string', default: '127.0.0.1' },
        tls: { ...TLS, description: `With TLS. ${TLS.description}` },
      },
    },
    apiEndpoints: {
      description: 'The addresses at which calls arrive, by name.',
      type: 'object',
      minProperties: 1,
      additionalProperties: API_ENDPOINT,
    },
    serviceEndpoints: {
      description: 'The upstreams, by the names that headers and usage records show.',
      type: 'object',
      propertyNames: { pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' },
      additionalProperties: SERVICE_ENDPOINT,
    },
    policies: {
      description: 'The policies that pipelines may use.',
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      uniqueItems: true,
    },
    pipelines: {
      description: 'The pipelines, by name: what happens to a call.',
      type: 'object',
      minProperties: 1,
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['apiEndpoints', 'policies'],
        properties: {
          apiEndpoints: {
            description: 'The endpoints of the pipeline; each endpoint belongs to one pipeline.',
            type: 'array',
            items: { type: 'string' },
            minItems: 1,
            uniqueItems: true,
          },
          policies: {
            description: 'Its policies in order, each with its settings.',
            type: 'array',
            minItems: 1,
            items: {
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
          },
        },
      },
    },
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
    fastLane: {
      description: "Calls of pipelines made of Tollgate's own policies are served without going through Express.",
      type: 'boolean',
      default: true,
    },
    maxKept: {
      description:
        'Objects of one account at vendors (threads, containers, responses) that are remembered. The oldest are dropped within an hour.',
      type: 'integer',
      minimum: 1,
      default: 100_000,
    },
    ejection: {
      description: 'When a failing upstream is ejected, and for how long.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        consecutiveFailures: {
          description: 'Consecutive failures that eject an upstream.',
          type: 'integer',
          minimum: 1,
          default: 5,
        },
        outFor: {
          ...DURATION,
          description: 'Duration of the first ejection; the nth lasts n times as long.',
          default: '30s',
        },
        outAtMost: { ...DURATION, description: 'Longest ejection.', default: '5m' },
      },
    },
    keys: {
      description: 'How many API keys an account may make, and how often a key may ask the API beside model calls.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        madePerDay: {
          description: 'Keys and new secrets that an account may make within a day, at any pace.',
          type: 'integer',
          minimum: 0,
          maximum: 1_000_000,
          default: 200,
        },
        madePerHour: {
          description: 'Keys and new secrets that it may make within an hour after those.',
          type: 'integer',
          minimum: 0,
          maximum: 1_000_000,
          default: 60,
        },
        maxKeys: {
          description: 'Keys of an account that are not revoked. Default: any number.',
          type: 'integer',
          minimum: 1,
        },
        requestsPerMinute: {
          description:
            'Requests of one key to the API beside model calls: sandboxes, quotes, usage, balance, responses.',
          type: 'integer',
          minimum: 1,
          maximum: 1_000_000,
          default: 600,
        },
      },
    },
    excess: {
      description: 'How to treat keys and accounts whose requests cost more than their holds.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        stopKeyAboveUsd: {
          description:
            'A key is revoked when these costs exceed this many USD. An account is frozen when its own exceed ten times as much since it was last unfrozen.',
          type: 'number',
          minimum: 0,
          maximum: 9_000_000,
          default: 5,
        },
      },
    },
    ledger: {
      description: 'When holds expire, and how durable acknowledged writes are.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        leaseSeconds: {
          description:
            'Time after which the holds of a dead process are released. Renewals, retries of settles and the spool depend on it. A process that is paused for longer loses the cost of its open calls.',
          type: 'integer',
          minimum: LEASE_SECONDS.least,
          maximum: LEASE_SECONDS.most,
          default: LEASE_SECONDS.usual,
        },
        allowances: {
          description:
            'Whether this process holds money of busy keys in advance and serves their calls from memory. With false each call asks Redis twice. The embedded ledger ignores it.',
          type: 'boolean',
          default: true,
        },
        waitReplicas: {
          description:
            'Number of Redis replicas that must acknowledge a write of the ledger before the caller gets an answer (WAIT); 0 waits for none. Not with a Cluster.',
          type: 'integer',
          minimum: 0,
          maximum: 5,
          default: 0,
        },
        waitTimeoutMs: {
          description: 'How long to wait for the replicas.',
          type: 'integer',
          minimum: 10,
          maximum: 120,
          default: 100,
        },
        onTooFew: {
          description:
            '`refuse`: the call gets 503, and settles are retried until the replicas acknowledge them. `warn`: the call continues, and the log and a metric report it.',
          enum: ['refuse', 'warn'],
          default: 'refuse',
        },
      },
    },
    stepTimeout: {
      ...DURATION,
      description:
        'A call fails with 500 if a policy takes longer for its step. For policies without a timeout of their own.',
      default: '30s',
    },
    connections: {
      description: 'How many connections each listener accepts; it closes further ones at once.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        most: { description: 'In all.', type: 'integer', minimum: 1, default: 10_000 },
        mostOfAddress: {
          description: 'Of one IPv4 address, or of one /64 of IPv6.',
          type: 'integer',
          minimum: 1,
          default: 1_000,
        },
      },
    },
    proxies: {
      description: 'Your own proxies and load balancers in front of the public listener.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        count: {
          description: 'How many proxies are in a row, each of which adds an address to X-Forwarded-For.',
          type: 'integer',
          minimum: 0,
          maximum: 10,
          default: 0,
        },
        addresses: {
          description:
            'Addresses and ranges of these proxies. The gateway trusts X-Forwarded-For only from them, and `connections.mostOfAddress` does not apply to them. Default: loopback and private ranges with a `count` above 0, else none.',
          type: 'array',
          items: {
            type: 'string',
            pattern: '^[0-9A-Fa-f.:]{2,45}(/[0-9]{1,3})?$',
            'x-expected': 'an address, or a range such as 10.0.0.0/8',
          },
        },
      },
    },
    cors: {
      description:
        'Which web pages may call the API of the public listener from a browser. Default: none of another origin.',
      type: 'object',
      additionalProperties: false,
      required: ['origins'],
      properties: {
        origins: {
          description:
            'Origins as browsers write them, such as `https://app.example.com`: lower case, no path, and a port only if it is not the default one. `*` allows every page.',
          type: 'array',
          minItems: 1,
          items: {
            type: 'string',
            pattern: '^(\\*|(?!http://[^:]*:80$|https://[^:]*:443$)[a-z][a-z0-9+.-]*://[^/?#@*\\sA-Z]+)$',
            'x-expected': 'an origin such as https://app.example.com, or *',
          },
        },
      },
    },
    answerStore: {
      description:
        'Keeps unstreamed answers of calls with an Idempotency-Key in the memory of the process that gave them, for clients that repeat the call. Answers are content: see docs/security.md. Default: off.',
      type: 'object',
      additionalProperties: false,
      properties: {
        maxBytes: {
          description: 'Memory for all kept answers of a process; the oldest are dropped first.',
          type: 'integer',
          minimum: 1_048_576,
          default: 67_108_864,
        },
        maxAge: { ...DURATION, description: 'How long an answer is kept.', default: '10m' },
      },
    },
    clientIdle: {
      ...DURATION,
      description: 'A client that reads nothing of its answer for this long is treated as disconnected.',
      default: '10m',
    },
    webSockets: {
      description: 'Limits for WebSockets of clients, which carry Responses calls.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        mostOfKey: {
          description: 'Open WebSockets of one key in one process.',
          type: 'integer',
          minimum: 1,
          default: 8,
        },
        mostFrameBytes: {
          description: 'A larger frame closes its WebSocket (1009).',
          type: 'integer',
          minimum: 1_024,
          maximum: 20_971_520,
          default: 20_971_520,
        },
        idle: {
          ...DURATION,
          description: 'A WebSocket without a frame and without a running response is closed after this time.',
          default: '5m',
        },
        life: {
          ...DURATION,
          description: 'Lifetime of a WebSocket; a running response finishes first.',
          default: '60m',
        },
      },
    },
    shutdownGrace: {
      ...DURATION,
      description: 'How long running calls may finish when the process stops or has failed; then they are ended.',
      default: '25s',
    },
    config: {
      description: 'The source of the configuration of calls.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        source: {
          description:
            'file: gateway.config.yml beside this file, on every node. database: revisions that are applied through the admin listener and that every node follows; the file is only the first of them.',
          enum: ['file', 'database'],
          default: 'file',
        },
      },
    },
    log: {
      description: 'What the log contains in addition to warnings and errors.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        calls: {
          description:
            'Share of calls and of requests of our own API that are logged at level info; failed ones are always logged. 0 logs none.',
          type: 'number',
          minimum: 0,
          maximum: 1,
          default: 1,
        },
      },
    },
    metrics: {
      description: 'What `GET /metrics` of the admin listener shows.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        accounts: {
          description:
            'How many accounts have their own series: those that spend most. `other` sums up all other accounts.',
          type: 'integer',
          minimum: 0,
          maximum: 1_000,
          default: 50,
        },
      },
    },
    watchConfig: {
      description: 'Reloads gateway.config.yml when it changes; a file with errors is rejected, and the log says why.',
      type: 'boolean',
      default: true,
    },
    plugins: {
      description: 'The plugins to load, each with its settings.',
      type: 'object',
      minProperties: 1,
      additionalProperties: {
        type: 'object',
        required: ['package'],
        properties: {
          package: { description: 'Module to load; absolute, or installed beside Tollgate.', type: 'string' },
        },
      },
    },
  },
} as const;

export type GatewaySettings = Settings<typeof GATEWAY_SCHEMA>;
export type ServiceEndpointSettings = Settings<typeof SERVICE_ENDPOINT>;
/** The certificates of a listener, by the requested host name. */
export type TlsSettings = Settings<typeof TLS>;
export type ModelSettings = Settings<typeof MODEL>;
export type SystemSettings = Settings<typeof SYSTEM_SCHEMA>;
