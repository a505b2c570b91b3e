import { createHash } from 'node:crypto';
import { fail } from '../../../core/base/errors';
import { formatUsd, parseUsd } from '../../../core/base/money';
import { compileCheck, type Schema, type Settings } from '../../../core/base/settings';
import { type CallTags, tagsText } from '../../../core/calls/tags';
import { invalidField } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import type { SandboxPolicy } from '../lifecycle/sandbox';
import type { OfferedInstance } from '../offerings/offering';
import { chooseOffering, type OfferingChoice, REQUIREMENTS, readRequirements } from '../offerings/requirements';
import { type Metadata, readMetadata } from './metadata';

/** The schema of a creation's body without its members' schemas, because each member has its own error code. `CREATION_BODY` has them all. */
export const CREATION = {
  type: 'object',
  additionalProperties: false,
  properties: { selection: {}, idempotencyKey: {}, policy: {}, metadata: {} },
} as const;

const SECONDS = { type: ['integer', 'null'], minimum: 1, maximum: 31_536_000 } as const;

const POLICY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    resumeOnAccess: { type: ['boolean', 'null'] },
    idleTimeoutSeconds: SECONDS,
    maxLifetimeSeconds: SECONDS,
    maxTotalCostUsd: { type: ['string', 'null'], maxLength: 40 },
    onFundsExhausted: { type: ['string', 'null'], enum: ['suspend', 'terminate', null] },
  },
} as const;

export const IDEMPOTENCY_KEY = {
  description: 'The same for every retry of one request.',
  type: 'string',
  minLength: 1,
  maxLength: 160,
} as const;

/** The schema of a selection by requirements: the requirements of an offering, and a maximum hourly price. */
export const BY_REQUIREMENTS = {
  type: 'object',
  additionalProperties: false,
  required: ['requirements'],
  properties: { requirements: REQUIREMENTS, maxEstimatedHourlyUsd: { type: ['string', 'null'] } },
} as const;

export function byId(name: 'quoteId' | 'offeringId'): Schema {
  return { ...object({ [name]: shape.uuid }), additionalProperties: false };
}

/** The body of a creation as the OpenAPI document describes it. */
export const CREATION_BODY = {
  ...CREATION,
  required: ['selection', 'idempotencyKey'],
  properties: {
    selection: { anyOf: [BY_REQUIREMENTS, byId('offeringId'), byId('quoteId')] },
    idempotencyKey: IDEMPOTENCY_KEY,
    policy: POLICY,
    metadata: { type: 'object', description: 'Shown, listed and searched; must not contain secrets.' },
  },
  example: {
    selection: { requirements: { capabilities: ['exec', 'files'] }, maxEstimatedHourlyUsd: '0.10' },
    idempotencyKey: 'order-7',
    policy: { idleTimeoutSeconds: 600 },
    metadata: { order: '7' },
  },
} as const;

type Selection = { readonly quoteId: string } | OfferingChoice;

/** A creation request, read and normalised. */
export interface Creation {
  readonly idempotencyKey: string;
  readonly selection: Selection;
  readonly policy: SandboxPolicy;
  readonly metadata: Metadata;
  /** The hash of the request's selection and policy. Two requests with the same meaning have the same hash. */
  readonly requestHash: string;
  /** The tags that the caller gives, as of `tagsText`. */
  readonly tags?: string | undefined;
}

const checkPolicy = compileCheck<Settings<typeof POLICY>>(POLICY);

/**
 * Reads the body of a creation; `tags` are those of its head.
 * @throws IDEMPOTENCY_KEY_INVALID, SELECTION_INVALID, REQUIREMENTS_INVALID, METADATA_INVALID, INVALID_FIELD
 */
export function readCreation(body: Settings<typeof CREATION>, tags: CallTags | undefined): Creation {
  const idempotencyKey = readIdempotencyKey(body.idempotencyKey);
  const selection = readSelection(body.selection);
  const policy = readPolicy(body.policy);
  const metadata = readMetadata(body.metadata);
  const requestHash = createHash('sha256').update(canonical({ selection, policy })).digest('hex');
  const text = tagsText(tags, { agent: undefined, end_user: undefined, session: undefined });
  return { idempotencyKey, selection, policy, metadata, requestHash, tags: text };
}

export function readIdempotencyKey(value: unknown): string {
  const isFine = typeof value === 'string' && /^[^\p{Cc}\p{Cs}]{1,160}$/u.test(value);
  if (isFine) return value;
  throw fail('IDEMPOTENCY_KEY_INVALID', {
    param: 'idempotencyKey',
    message: 'idempotencyKey: expected 1 to 160 characters, the same for every retry of one creation',
  });
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads how a creation selects its offering: by id, by quote or by requirements. */
function readSelection(value: unknown): Selection {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidSelection('an object');
  const { quoteId, offeringId, requirements, maxEstimatedHourlyUsd, ...rest } = value as Record<string, unknown>;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw invalidSelection(`not "${unknown}"`);
  const given = [quoteId, offeringId, requirements].filter((each) => each !== undefined);
  if (given.length !== 1) throw invalidSelection('exactly one of quoteId, offeringId and requirements');
  if (requirements === undefined) {
    if (maxEstimatedHourlyUsd !== undefined) throw invalidSelection('maxEstimatedHourlyUsd only with requirements');
    const id = quoteId ?? offeringId;
    if (typeof id !== 'string' || !UUID.test(id))
      throw invalidSelection('an id such as 019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d');
    return quoteId === undefined ? { offeringId: id.toLowerCase() } : { quoteId: id.toLowerCase() };
  }
  return {
    requirements: readRequirements(requirements, 'selection.requirements'),
    maxEstimatedHourlyUsd: readCeiling(maxEstimatedHourlyUsd, 'selection.maxEstimatedHourlyUsd', 'SELECTION_INVALID'),
  };
}

function invalidSelection(expected: string) {
  return fail('SELECTION_INVALID', { param: 'selection', message: `selection: expected ${expected}` });
}

/** Reads the body of a request for a quote, and returns the offering that is chosen. */
export function chooseForQuote(
  { requirements, maxEstimatedHourlyUsd, offeringId }: Readonly<Record<string, unknown>>,
  offered: readonly OfferedInstance[],
): OfferedInstance {
  if ((requirements === undefined) === (offeringId === undefined)) {
    throw fail('SELECTION_INVALID', { message: 'Expected exactly one of requirements and offeringId.' });
  }
  if (requirements === undefined) {
    if (maxEstimatedHourlyUsd === undefined) return chooseOffering(offered, { offeringId: String(offeringId) }, '');
    throw fail('SELECTION_INVALID', {
      param: 'maxEstimatedHourlyUsd',
      message: 'maxEstimatedHourlyUsd is only allowed together with requirements.',
    });
  }
  const ceiling = readCeiling(maxEstimatedHourlyUsd, 'maxEstimatedHourlyUsd', 'REQUIREMENTS_INVALID');
  const choice = { requirements: readRequirements(requirements, 'requirements'), maxEstimatedHourlyUsd: ceiling };
  return chooseOffering(offered, choice, '');
}

function readCeiling(
  value: unknown,
  param: string,
  code: 'SELECTION_INVALID' | 'REQUIREMENTS_INVALID' | 'INVALID_FIELD',
): string | undefined {
  if (value === undefined || value === null) return undefined;
  try {
    if (typeof value !== 'string') throw new RangeError('expected a decimal amount of USD as a string');
    return formatUsd(parseUsd(value));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw fail(code, { param, message: `${param}: ${error.message}` });
  }
}

function readPolicy(value: unknown): SandboxPolicy {
  const checked = checkPolicy(value ?? {});
  if ('problems' in checked) {
    throw invalidField(checked.problems.map((problem) => ({ ...problem, path: ['policy', ...problem.path] })));
  }
  const { resumeOnAccess, idleTimeoutSeconds, maxLifetimeSeconds, maxTotalCostUsd, onFundsExhausted } = checked.value;
  return {
    resumeOnAccess: resumeOnAccess ?? false,
    idleTimeoutSeconds: idleTimeoutSeconds ?? null,
    maxLifetimeSeconds: maxLifetimeSeconds ?? null,
    maxTotalCostUsd: readCeiling(maxTotalCostUsd, 'policy.maxTotalCostUsd', 'INVALID_FIELD') ?? null,
    onFundsExhausted: onFundsExhausted ?? 'terminate',
  };
}

/** Returns the same text for values that mean the same: sorts names and lists, and drops undefined members and empty lists. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).sort().join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined && !(Array.isArray(member) && member.length === 0))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}
