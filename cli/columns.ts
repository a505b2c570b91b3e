import { isDeepStrictEqual } from 'node:util';
import { formatUsd, parseUsd } from '../core/base/money';
import { problemText } from '../core/configuration/yaml-file';
import type { Answers } from '../shapes/answers';
import type { AdminRoute, Shown } from './command';
import { type Columns, same } from './output';

/** The columns of tables, by the kind of item that a table shows. */

type Of<R extends AdminRoute> = Columns<Shown<R>>;

export const ACCOUNT: Of<'GET /admin/v1/accounts/{accountId}'> = {
  ...same('id', 'name', 'status'),
  'balance USD': ({ balanceUsd }) => balanceUsd,
  'available USD': ({ availableUsd }) => availableUsd,
  markup: ({ markup }) => markup,
  'low below USD': ({ balanceLowUsd }) => balanceLowUsd,
  created: ({ createdAt }) => createdAt,
};

export const BALANCE: Of<'GET /admin/v1/accounts/{accountId}'> = {
  'balance USD': ({ balanceUsd }) => balanceUsd,
  'held USD': ({ heldUsd }) => heldUsd,
  'available USD': ({ availableUsd }) => availableUsd,
};

export const KEY: Of<'GET /admin/v1/accounts/{accountId}/keys'> = {
  ...same('id', 'name'),
  key: ({ prefix, suffix }) => `${prefix}…${suffix}`,
  status: ({ status }) => status,
  'spent USD': ({ spentUsd }) => spentUsd,
  'limit USD': ({ balanceLimit }) => balanceLimit,
  'daily USD': ({ dailyLimit }) => dailyLimit,
  'monthly USD': ({ monthlyLimit }) => monthlyLimit,
  'calls/min': ({ callsPerMinute }) => callsPerMinute,
  'tokens/min': ({ tokensPerMinute }) => tokensPerMinute,
  models: ({ allowedModels }) => allowedModels?.join(', ') ?? 'all',
  markup: ({ markup }) => markup,
  debug: ({ debug }) => (debug ? 'yes' : null),
  addresses: ({ allowedAddresses }) => allowedAddresses?.join(', ') ?? 'all',
  team: ({ teamId }) => teamId,
  member: ({ memberId }) => memberId,
  expires: ({ expiresAt }) => expiresAt ?? 'never',
  created: ({ createdAt }) => createdAt,
};

export const USER: Of<'GET /admin/v1/accounts/{accountId}/users'> = {
  ...same('id', 'email', 'role', 'status'),
  created: ({ createdAt }) => createdAt,
  'password set': ({ passwordChangedAt }) => passwordChangedAt,
  identity: ({ identity }) => identity && `${identity.subject} at ${identity.issuer}`,
};

export const MEMBER: Of<'GET /admin/v1/accounts/{accountId}/users'> = {
  ...same('id', 'email', 'role', 'status'),
  created: ({ createdAt }) => createdAt,
};

export const INVITATION: Of<'POST /admin/v1/accounts/{accountId}/invitations'> = {
  ...same('id', 'email', 'role'),
  teams: ({ teamIds }) => teamIds.join(', ') || null,
  expires: ({ expiresAt }) => expiresAt,
  link: ({ url, path }) => url ?? path,
};

export const TEAM: Of<'GET /admin/v1/accounts/{accountId}/teams'> = {
  ...same('id', 'name'),
  members: ({ members }) => members.join(', ') || null,
  created: ({ createdAt }) => createdAt,
};

/** Only for one account, key or team, because few have demands or required tags and tables of lists are wide. */
export const DEMANDED = { demands: ({ require }: { readonly require: string | null }) => require };
export const REQUIRED = {
  ...DEMANDED,
  'required tags': ({ requiredTags }: { readonly requiredTags: readonly string[] | null }) =>
    requiredTags?.join(', ') ?? null,
};

export const BUDGET: Of<'GET /admin/v1/budgets/{budgetId}'> = {
  ...same('id', 'scope', 'name', 'window'),
  'limit USD': ({ limitUsd }) => limitUsd,
  'spent USD': ({ spentUsd }) => spentUsd,
  'held USD': ({ heldUsd }) => heldUsd,
  'left USD': left,
  thresholds: ({ thresholds }) => thresholds.map((percent) => `${percent}%`).join(' ') || null,
  resets: ({ resetsAt }) => resetsAt ?? 'never',
};

/** Returns what a budget leaves, negative where its limit was lowered; null while the ledger does not say what is spent. */
function left({ limitUsd, spentUsd, heldUsd }: Answers['GET /admin/v1/budgets/{budgetId}']): string | null {
  if (spentUsd === null || heldUsd === null) return null;
  return formatUsd(parseUsd(limitUsd) - parseUsd(spentUsd) - parseUsd(heldUsd));
}

export const EVENT: Of<'GET /admin/v1/events'> = {
  ...same('sequence', 'type'),
  account: ({ accountId }) => accountId,
  time: ({ timestamp }) => timestamp,
  data: ({ data }) => JSON.stringify(data),
};

export const WEBHOOK: Of<'PATCH /admin/v1/webhooks/{webhookId}'> = {
  ...same('id', 'url', 'status'),
  types: ({ types }) => types?.join(', ') ?? 'all',
  created: ({ createdAt }) => createdAt,
};

export const DELIVERY: Of<'GET /admin/v1/webhooks/{webhookId}/deliveries'> = {
  id: ({ id }) => id,
  event: ({ eventId }) => eventId,
  ...same('type', 'status', 'attempts'),
  'answered with': ({ responseStatus }) => responseStatus,
  error: ({ error }) => error,
  'next attempt': ({ nextAttemptAt }) => nextAttemptAt,
  created: ({ createdAt }) => createdAt,
};

export const SANDBOX: Of<'GET /admin/v1/sandboxes'> = {
  id: ({ id }) => id,
  account: ({ accountId }) => accountId,
  offering: ({ offeringName }) => offeringName,
  supplier: ({ supplier }) => supplier,
  phase: ({ lifecyclePhase }) => lifecyclePhase,
  cost: ({ totalCost }) => totalCost,
  'paid until': ({ reservedUntil }) => reservedUntil,
  created: ({ createdAt }) => createdAt,
};

export const ORPHAN: Of<'GET /admin/v1/sandboxes/orphans'> = {
  ...same('supplier', 'name'),
  sandbox: ({ sandboxId }) => sandboxId,
  reason: ({ reason }) => reason,
  'failed tries': ({ attempts }) => attempts,
  found: ({ foundAt }) => foundAt,
  removed: ({ removedAt }) => removedAt,
};

export const PLACE: Of<'GET /admin/v1/sandboxes/places'> = {
  ...same('id', 'supplier', 'host'),
  'last seen': ({ seenAt }) => seenAt,
  silent: ({ silent }) => (silent ? 'yes' : 'no'),
  lost: ({ lostAt }) => lostAt,
  'active sandboxes': ({ activeSandboxes }) => activeSandboxes,
};

export const UPSTREAM: Of<'GET /admin/v1/upstreams/{name}'> = {
  name: ({ name }) => name,
  adapters: ({ adapters }) => adapters.join(', '),
  ...same('tier', 'state'),
  // Without calls the success rate is meaningless, so the cell stays empty.
  'success %': ({ successRate, attempts: { answered, failed } }) =>
    successRate === null || (successRate === 1 && answered + failed === 0) ? null : (successRate * 100).toFixed(1),
  'first token ms': ({ firstTokenMs }) => firstTokenMs,
  'answer ms': ({ wholeAnswerMs }) => wholeAnswerMs,
  'answered/failed': ({ attempts: { answered, failed } }) => `${answered}/${failed}`,
  models: ({ models }) => models.length,
  'in/out USD per million': ({ models }) =>
    `${range(models.map(({ pricePerMillion: { input } }) => input))} / ${range(models.map(({ pricePerMillion: { output } }) => output))}`,
  credentials: ({ credentials }) => {
    const good = credentials.filter(({ state }) => state === 'available');
    return good.length === credentials.length ? credentials.length : `${good.length} of ${credentials.length}`;
  },
  note: ({ disabledReason, takenOut, ejectedUntil, credentials }) =>
    disabledReason ??
    takenOut?.reason ??
    (ejectedUntil === null ? credentialNote(credentials) : `until ${ejectedUntil}`),
};

/** Lists the credentials that the gateway cannot use, each with the reason; null if there are none. */
function credentialNote(credentials: Answers['GET /admin/v1/upstreams/{name}']['credentials']): string | null {
  const notes = credentials
    .filter(({ state }) => state !== 'available')
    .map(({ name, state, refusedWith, restsUntil }) => {
      const status = refusedWith === null ? '' : ` (${refusedWith})`;
      return `${name}: ${state}${status}${restsUntil === null ? '' : ` until ${restsUntil}`}`;
    });
  return notes.length === 0 ? null : notes.join('; ');
}

/** Returns the lowest and the highest amount as a range, without trailing zeros. */
function range(amounts: readonly string[]): string {
  const sorted = amounts.map(Number).sort((one, two) => one - two);
  const [lowest] = sorted;
  const highest = sorted.at(-1);
  return lowest === highest ? String(lowest ?? '-') : `${lowest}–${highest}`;
}

export const TEST: Of<'POST /admin/v1/upstreams/{name}/test'> = {
  ...same('upstream', 'model', 'protocol'),
  result: ({ ok }) => (ok ? 'answered' : 'failed'),
  ...same('status', 'ms', 'problem'),
};

export const ROLLOUT: Of<'GET /admin/v1/rollouts/{name}'> = {
  ...same('name', 'status'),
  stage: ({ stage, stages }) => `${stage} of ${stages.length}`,
  'share %': ({ share }) => share,
  'next in': ({ stageEndsAt }) => timeTo(stageEndsAt),
  calls: ({ inStage }) => inStage.treatment.calls,
  'failed %': ({ inStage }) => failed(inStage.treatment),
  change: ({ change }) => change,
  why: ({ reason, waitsFor }) => reason ?? waitsFor,
};

export function failed({ errorRate }: { readonly errorRate: number | null }): string | null {
  return errorRate === null ? null : (errorRate * 100).toFixed(2);
}

/** Returns the time from now to `at`, in minutes and seconds or in hours and minutes; null if `at` is null. */
export function timeTo(at: string | null): string | null {
  if (at === null) return null;
  const seconds = Math.max(0, Math.round((Date.parse(at) - Date.now()) / 1_000));
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}

export const RECORD: Of<'GET /admin/v1/usage'> = {
  time: ({ createdAt }) => createdAt,
  request: ({ requestId }) => requestId,
  key: ({ keyName }) => keyName,
  model: ({ model, modelRequested }) => model ?? modelRequested,
  ...same('upstream', 'status'),
  tokens: ({ totalTokens }) => totalTokens,
  'cost USD': ({ cost }) => cost,
  billing: ({ billing }) => billing,
};

export const ATTEMPT: Of<'GET /admin/v1/usage/{requestId}/attempts'> = {
  time: ({ createdAt }) => createdAt,
  ...same('upstream', 'credential', 'model', 'cause', 'outcome', 'status'),
  reported: ({ isReported }) => (isReported ? 'yes' : 'no'),
  'upstream cost USD': ({ upstreamCost }) => upstreamCost,
  'upstream request': ({ upstreamRequestId }) => upstreamRequestId,
};

export const TOKEN: Of<'GET /admin/v1/tokens'> = {
  ...same('id', 'name', 'role'),
  ends: ({ suffix }) => `…${suffix}`,
  created: ({ createdAt }) => createdAt,
  expires: ({ expiresAt }) => expiresAt ?? 'never',
  revoked: ({ revokedAt }) => revokedAt,
  'last used': ({ lastUsedAt }) => lastUsedAt,
};

export const CHANGE: Of<'GET /admin/v1/audit'> = {
  time: ({ createdAt }) => createdAt,
  who: ({ actor }) => actor,
  ...same('action', 'subject'),
  before: ({ before, after }) => differing(before, after),
  after: ({ before, after }) => differing(after, before),
};

type Side = Readonly<Record<string, unknown>> | null;

/** Returns the members of `side` (one side of a comparison) that differ from `other`, as JSON. `--json` shows both sides in full. */
function differing(side: Side, other: Side): string | null {
  if (side === null) return null;
  const isOther = ([name, value]: [string, unknown]) => !isDeepStrictEqual(value, other?.[name] ?? null);
  return JSON.stringify(Object.fromEntries(Object.entries(side).filter(isOther)));
}

export const REVISION: Of<'GET /admin/v1/config/revisions'> = {
  ...same('number', 'revision'),
  time: ({ createdAt }) => createdAt,
  who: ({ actor }) => actor,
  'brings back': ({ restores }) => restores,
  note: ({ note }) => note,
};

export const PROPOSAL: Of<'GET /admin/v1/catalogue/proposals'> = {
  ...same('id', 'source', 'status'),
  created: ({ createdAt }) => createdAt,
  'holds from': ({ holdsFrom }) => holdsFrom,
  rows: ({ rows }) => rows.length,
  stopped: ({ rows }) => rows.filter(({ state }) => state === 'stopped').length,
  accepted: ({ rows }) => rows.filter(({ state }) => state === 'accepted').length,
  gone: ({ gone }) => gone.length,
};

export const PROPOSAL_ROW: Columns<Answers['GET /admin/v1/catalogue/proposals/{proposalId}']['rows'][number]> = {
  row: ({ id }) => id,
  model: ({ upstream, model }) => `${upstream}/${model}`,
  ...same('meter', 'old', 'new', 'state', 'guard'),
};

export const REPLAYED: Columns<Answers['GET /admin/v1/usage/replay']['items'][number]> = {
  account: ({ accountId }) => accountId,
  ...same('model', 'calls'),
  'cost USD': ({ costUsd }) => costUsd,
  'replayed USD': ({ replayedUsd }) => replayedUsd,
};

export const ACTIVE_REVISION: Of<'GET /admin/v1/config/revision'> = {
  ...same('revision', 'number', 'source', 'since'),
  'restart needed for': ({ restartNeeded }) => restartNeeded.join(', ') || null,
  'last failure': ({ lastFailure }) => lastFailure?.at,
  problems: ({ lastFailure }) => lastFailure?.problems.map(problemText).join('; '),
};

export const VIOLATION: Of<'GET /admin/v1/ledger/verify'> = {
  invariant: ({ invariant }) => invariant,
  account: ({ accountId }) => accountId,
  seq: ({ seq }) => seq,
  scope: ({ scope, keyId }) => scope ?? (keyId && `k:${keyId}`),
  reservation: ({ rid }) => rid,
  ...same('expected', 'found', 'repair'),
};
