import { TRANSLATE } from '../catalog/catalog';
import { PROTOCOL_NAMES } from '../catalog/protocols';
import { REASONING_SETTINGS } from '../catalog/upstream';
import { byMeter } from '../catalog/usage';
import { LEASE_SECONDS } from '../ledger/lease-times';
import { DURATION, type Settings } from '../settings';

/** Decimal USD per million tokens; numbers are exact up to 8 decimals. */
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

/** Tiers, speeds or regions by the name that answers have for them. */
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
        factor: { description: 'Every price times this.', type: ['number', 'string'] },
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

/** What a model costs. */
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
        'The price list (`anthropic`, `openai`, `google`), or `list/model`, that says context, maxOutput, price and created where they are left out here.',
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
        'How it is told how much to reason where a call of another protocol says so: by a word (`effort`) or by a number of tokens (`budget`). Default: it is not told.',
      enum: REASONING_SETTINGS,
    },
    estimatedMaxTokens: {
      description:
        'Output tokens expected of a call that names no limit, for the strategy `cost`; default: 4096, at most maxOutput.',
      type: 'integer',
      minimum: 0,
    },
    bounds: {
      description: 'The most tokens of things that the vendor fetches or unpacks; without one the context is held.',
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
      description: 'The most tokens of one image whose data is in the request.',
      type: 'integer',
      minimum: 1,
      default: 1_600,
    },
    tokenizerFactor: {
      description:
        'Tokens that its tokenizer makes at most for one of `o200k` or `cl100k`; 1 for a model that has one of these.',
      type: 'number',
      minimum: 1,
      default: 1.35,
    },
    toolOverheadTokens: {
      description: 'Tokens that the vendor adds to a call with tools, and for each tool that it defines itself.',
      type: 'integer',
      minimum: 0,
      default: 1_000,
    },
    maxTokensPerSecond: {
      description:
        'The most output tokens of one answer in a second. With `stopsOnCancel: true` of the upstream the holds of streams begin small and grow while they run.',
      type: 'number',
      exclusiveMinimum: 0,
    },
    toolUses: {
      description:
        'How often a call may use a tool that runs at the vendor where it has no `max_uses`, such as `webSearch: 3`. It is held, and written into the forwarded body.',
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

/** Where a secret is, which the configuration itself never has. */
const SECRET = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  properties: SECRET_PLACES,
} as const;

/** One of env, file, command, cloud and none. */
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
      description: 'The identity that the gateway has in the cloud it runs in.',
      enum: ['aws', 'google'],
    },
    none: { description: 'The upstream asks for no credential.', const: true },
    refreshEvery: {
      ...DURATION,
      description: 'How often command or cloud is asked again; earlier where it says when it expires. Default: 10m.',
    },
    name: {
      description: 'Its name in records, logs and lists; default: where it comes from, such as `env NAME`.',
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
  description: "Where the vendor's own reports of usage and cost are read, to be set beside the records.",
  type: 'object',
  additionalProperties: false,
  required: ['credential'],
  properties: {
    credential: {
      ...SECRET,
      description: "Where the key for the vendor's admin API is; while it is unset or empty no report is read.",
    },
    vendor: {
      description:
        'Whose reports they are; default: `anthropic` for the adapter `messages`, `openai` for `chat` and `embeddings`.',
      enum: ['anthropic', 'openai'],
    },
    url: {
      description: "The base address of the vendor's admin API; default: the upstream's `url`.",
      type: 'string',
      pattern: '^https?://',
    },
    apiKeyId: {
      description: "The vendor's id of the upstream's `credential`: only what it used is compared. Default: all keys.",
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
      description: 'A difference of more than this on one day is an alarm.',
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
        "Where the platform's key for this upstream is; while it is unset or empty the upstream is disabled.",
    },
    credentials: {
      description:
        'Several in place of one. One that is refused or rate limited rests, and the others are used meanwhile.',
      type: 'array',
      items: CREDENTIAL,
      minItems: 1,
      maxItems: 100,
    },
    reporting: REPORTING,
    tier: {
      description: 'How good it is; the strategy `quality` prefers the first.',
      enum: ['official', 'high-sla', 'standard'],
      default: 'standard',
    },
    weight: { description: 'Its share of the calls among equals.', type: 'number', exclusiveMinimum: 0, default: 1 },
    maxConcurrent: {
      description: 'Calls it may have under way at a time, from one process; default: no limit.',
      type: 'integer',
      minimum: 1,
    },
    allowPrivate: { description: 'It may live on a private address.', type: 'boolean', default: false },
    timeouts: {
      description: 'How long it may take.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        connect: { ...DURATION, description: 'For a connection; at most 120s.', default: '120s' },
        headers: { ...DURATION, description: 'For the head of the answer; at most 120s.', default: '120s' },
        firstToken: { ...DURATION, description: 'For the first content of a stream; default: no limit.' },
        idle: { ...DURATION, description: 'Between two bytes of an answer.', default: '300s' },
      },
    },
    prefill: { description: 'It can go on from a partial answer.', type: 'boolean', default: false },
    ignoreUsage: {
      ...NAMES,
      description: 'Paths of numbers in its reports, such as `queue_time`, that are free and raise no alarm.',
    },
    streamUsage: { description: 'It understands stream_options.include_usage.', type: 'boolean', default: true },
    translate: {
      description:
        'Whether calls of another protocol go there, translated: `last` after all upstreams that speak it, `equal` like those, or `never`.',
      enum: TRANSLATE,
      default: 'last',
    },
    webSocket: {
      description:
        'It takes `response.create` over a WebSocket at the address of its Responses calls. Otherwise each one that comes over a WebSocket is sent as a POST.',
      type: 'boolean',
      default: false,
    },
    traceContext: {
      description: 'Where traces are on, it is sent `traceparent` and `tracestate` of the call.',
      type: 'boolean',
      default: true,
    },
    versions: {
      description:
        'Versions of the Messages protocol (`anthropic-version`) that it takes; calls of others do not go there. Default: all.',
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      uniqueItems: true,
    },
    stopsOnCancel: {
      description:
        'It stops working, and charging, when a call is cancelled. `false`: a stream whose client leaves is read to its end, 15 minutes at most. Default: not said; such a stream is read on for 10 s and then cancelled.',
      type: 'boolean',
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

/** What customers pay, where that is not what the upstream charges. */
const CUSTOMER_PRICES = {
  description: 'Prices of your own, by a name that accounts and keys have as their `markup`.',
  type: 'object',
  propertyNames: { pattern: '^[a-z][a-z0-9-]{0,63}$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    properties: {
      factor: {
        description: "For models without a price here: so many times the upstream's price, from 0.1 to 100.",
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
  description: 'Where calls of one pipeline come in.',
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
      description: 'Compared as they are.',
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
      description: "The operator's listener; every request shows the admin token.",
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
      description: 'Where calls come in, by name.',
      type: 'object',
      minProperties: 1,
      additionalProperties: API_ENDPOINT,
    },
    serviceEndpoints: {
      description: 'Where calls may go: the upstreams, by the names that headers and usage records show.',
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
      description: 'What happens to a call, by name.',
      type: 'object',
      minProperties: 1,
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['apiEndpoints', 'policies'],
        properties: {
          apiEndpoints: {
            description: 'Whose calls take it; each endpoint has one pipeline.',
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

const UNUSED = { description: "Express Gateway's own; Tollgate does not use it.", type: 'object' } as const;

const ADDRESSES = {
  type: 'array',
  items: {
    type: 'string',
    pattern: '^[0-9A-Fa-f.:]{2,45}(/[0-9]{1,3})?$',
    'x-expected': 'an address, or a range such as 10.0.0.0/8',
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
    crypto: UNUSED,
    session: UNUSED,
    accessTokens: UNUSED,
    refreshTokens: UNUSED,
    authorizationCodes: UNUSED,
    fastLane: {
      description: "Calls of pipelines made of Tollgate's own policies are served without going through Express.",
      type: 'boolean',
      default: true,
    },
    ejection: {
      description: 'When an upstream that fails is left out, and for how long.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        consecutiveFailures: { description: 'So many failures in a row.', type: 'integer', minimum: 1, default: 5 },
        outFor: { ...DURATION, description: 'So long, times n at the nth ejection.', default: '30s' },
        outAtMost: { ...DURATION, description: 'Never longer than this.', default: '5m' },
      },
    },
    suspect: {
      description: 'What becomes of an upstream that reports more than calls allow.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        ejectAbove: {
          description: 'It is left out after more such answers than this within 10 minutes, as if it had failed.',
          type: 'integer',
          minimum: 0,
          default: 5,
        },
      },
    },
    excess: {
      description: 'What becomes of an account whose requests cost more than was held for them.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        freezeAboveUsd: {
          description: 'It is frozen when they have cost the platform more USD than this since it was last unfrozen.',
          type: 'number',
          minimum: 0,
          maximum: 90_000_000,
          default: 5,
        },
      },
    },
    ledger: {
      description: 'How holds end by themselves, and how sure it is that what was acknowledged stays.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        leaseSeconds: {
          description:
            'So long after a process died the holds of its calls are given back. Renewals, repeated settles and what waits on disk go by it. A process that stands still for longer loses the price of its open calls.',
          type: 'integer',
          minimum: LEASE_SECONDS.least,
          maximum: LEASE_SECONDS.most,
          default: LEASE_SECONDS.usual,
        },
        allowances: {
          description:
            'Whether this process takes money of keys that are used much in advance, in pieces, and serves their calls from memory. With false each call asks Redis twice. It must be false while processes of a version without it run on the same stores. The embedded ledger has none.',
          type: 'boolean',
          default: true,
        },
        waitReplicas: {
          description:
            'So many replicas of Redis must have what the ledger wrote before a caller is told (WAIT); 0 waits for none. Not with a Cluster.',
          type: 'integer',
          minimum: 0,
          maximum: 5,
          default: 0,
        },
        waitTimeoutMs: {
          description: 'How long it is waited for them.',
          type: 'integer',
          minimum: 10,
          maximum: 120,
          default: 100,
        },
        onTooFew: {
          description:
            '`refuse`: the call is answered 503, and what closes a call is repeated until they have it. `warn`: it goes on, and the log and a metric say so.',
          enum: ['refuse', 'warn'],
          default: 'refuse',
        },
      },
    },
    stepTimeout: {
      ...DURATION,
      description:
        'A policy that has not finished its step by then fails the call with 500; for policies that do not bound their own waiting.',
      default: '30s',
    },
    connections: {
      description: 'How many connections the public listener takes; those above are closed at once.',
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
        proxies: { ...ADDRESSES, description: 'Old name of `proxies.addresses`.' },
      },
    },
    proxies: {
      description: 'Your own proxies and load balancers in front of the public listener.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        count: {
          description:
            'How many stand in a row, each of which adds the address it was asked from to X-Forwarded-For; 0 unless given.',
          type: 'integer',
          minimum: 0,
          maximum: 10,
        },
        addresses: {
          ...ADDRESSES,
          description:
            'Addresses and ranges they connect from: X-Forwarded-For is believed of them alone, and `connections.mostOfAddress` does not bind them; loopback and private ranges unless given.',
        },
      },
    },
    cors: {
      description:
        'Which pages may call the API of the public listener from a browser and read its answers. None of another origin unless given.',
      type: 'object',
      additionalProperties: false,
      required: ['origins'],
      properties: {
        origins: {
          description:
            'Origins as browsers write them, such as `https://app.example.com`: lower case, no path, and a port only where it is not the usual one. `*` is every page.',
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
        'Keeps unstreamed answers of calls with an Idempotency-Key in the memory of the process that gave them, for clients that repeat the call. Answers are content: see docs/security.md. Off unless given.',
      type: 'object',
      additionalProperties: false,
      properties: {
        maxBytes: {
          description: 'What all answers of a process may take; the oldest give way.',
          type: 'integer',
          minimum: 1_048_576,
          default: 67_108_864,
        },
        maxAge: { ...DURATION, description: 'How long an answer is kept.', default: '10m' },
      },
    },
    clientIdle: {
      ...DURATION,
      description: 'A client that takes nothing of its answer for so long is treated as one that has left.',
      default: '10m',
    },
    webSockets: {
      description: 'What a client may do with WebSockets to which it brings Responses calls.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        mostOfKey: {
          description: 'So many of one key are open in one process.',
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
          description: 'One without a frame and without a response under way is closed after so long.',
          default: '5m',
        },
        life: {
          ...DURATION,
          description: 'One is closed after so long, behind the response that is under way.',
          default: '60m',
        },
      },
    },
    shutdownGrace: {
      ...DURATION,
      description:
        'How long running calls may finish when the process is told to stop, or has failed; then they are ended.',
      default: '25s',
    },
    config: {
      description: 'Where the configuration of calls comes from.',
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
      description: 'What the log says beside what an operator has to know.',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        calls: {
          description:
            'Which share of calls, and of requests of our own API, has a line at the level info; those that fail always have one. 0 is none at all.',
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
            'So many accounts have series of their own: those that spend most. All others are added up as `other`.',
          type: 'integer',
          minimum: 0,
          maximum: 1_000,
          default: 50,
        },
      },
    },
    watchConfig: {
      description: 'gateway.config.yml is reloaded when it changes; a file with mistakes is refused, and said so.',
      type: 'boolean',
      default: true,
    },
    plugins: {
      description: 'Which plugins are loaded, each with its settings.',
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
/** Certificates of a listener, by the host that clients ask for. */
export type TlsSettings = Settings<typeof TLS>;
export type ModelSettings = Settings<typeof MODEL>;
export type SystemSettings = Settings<typeof SYSTEM_SCHEMA>;
