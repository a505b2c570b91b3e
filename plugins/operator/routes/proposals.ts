import type { IncomingMessage, ServerResponse } from 'node:http';
import { TEXT, TIME } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { fail, invalidParam } from '../../../core/base/errors';
import type { Settings } from '../../../core/base/settings';
import { TOKEN_METERS } from '../../../core/catalog/usage';
import { withRows } from '../../../core/configuration/proposals/apply-rows';
import { LIST_FORMATS } from '../../../core/configuration/proposals/list';
import { GUARDS, hasOldPrice, propose, ROW_STATES } from '../../../core/configuration/proposals/rows';
import {
  acceptedRows,
  applyDue,
  checkAppliable,
  createProposal,
  findProposal,
  listProposals,
  PROPOSAL_SOURCES,
  reviewProposal,
  scheduleProposal,
} from '../../../core/configuration/proposals/store';
import { newestRevision } from '../../../core/configuration/revisions';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readFilter, readTime } from '../../../core/http/query';
import { listOf, object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import type { Operator } from '../../../core/operators/operators';
import {
  CHANGE_ERRORS,
  CHANGE_FIELDS,
  CHANGE_MEMBERS,
  checked,
  etagOf,
  planChange,
  refuseFiles,
  refuseObjections,
} from '../change';
import { MAX_LIST_BYTES, type Origin, readList } from '../read-list';

const ROW = object({
  id: shape.text,
  upstream: shape.text,
  model: shape.text,
  meter: oneOf(...TOKEN_METERS),
  old: { ...shape.usd, description: 'The configured price, USD per million tokens.' },
  new: { ...orNull(shape.usd), description: 'The price in the list; null if it has none.' },
  source: shape.text,
  date: { ...shape.text, description: 'The day on which the list was read.' },
  state: oneOf(...ROW_STATES),
  guard: { ...orNull(oneOf(...GUARDS)), description: 'Why the row is stopped; null if it is not.' },
});

const PROPOSAL = object({
  id: shape.uuid,
  source: oneOf(...PROPOSAL_SOURCES),
  format: oneOf(...LIST_FORMATS),
  url: orNull(shape.text),
  status: oneOf('open', 'applied'),
  createdAt: shape.time,
  holdsFrom: {
    ...orNull(shape.time),
    description: 'When the accepted rows are, or were, applied; null while it is open.',
  },
  number: { ...orNull(shape.integer), description: 'The revision that applied them; null until then.' },
  rows: listOf(ROW),
  gone: {
    ...listOf(object({ upstream: shape.text, model: shape.text })),
    description: 'Models whose price came from this list, and which it no longer has.',
  },
});

const SHOWN = { 200: { description: 'The proposal.', schema: PROPOSAL } };

const NEW_PROPOSAL = {
  type: 'object',
  additionalProperties: false,
  required: ['source'],
  properties: {
    source: { enum: PROPOSAL_SOURCES, description: 'The list, or `file` to recognise its format.' },
    text: { type: 'string', description: 'The list, at most 20 MB.' },
    url: { type: 'string', maxLength: 2_000, description: 'Its address, instead of `text`.' },
  },
  example: { source: 'litellm', text: '{"acme/large":{"litellm_provider":"acme","input_cost_per_token":3e-06}}' },
} as const;

/** Quotes and line ends of the list are escaped in the body, which makes it larger. */
const MAX_BODY_BYTES = 2 * MAX_LIST_BYTES;

function originOf(text: string | undefined, url: string | undefined): Origin {
  if (text !== undefined && url === undefined) return { text };
  if (url !== undefined && text === undefined) return { url };
  const param = text === undefined ? 'text' : 'url';
  throw invalidParam(param, 'expected either text or url');
}

const ROW_IDS = {
  type: 'array',
  maxItems: 5_000,
  uniqueItems: true,
  items: { type: 'string', maxLength: 20 },
} as const;

const REVIEW = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { accept: ROW_IDS, refuse: ROW_IDS },
  example: { accept: ['1', '2'], refuse: ['3'] },
} as const;

const { dryRun, force } = CHANGE_FIELDS;

const APPLY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: { ...TIME, description: 'When the prices begin to hold; default: now.' },
    note: TEXT,
    force,
    dryRun,
  },
  example: { from: '2026-12-01T00:00:00Z', note: 'prices of December' },
} as const;

const NEWEST = { ETag: 'The number of the newest applied revision.' };
const APPLIED = object({ ...CHANGE_MEMBERS, holdsFrom: shape.time });

async function apply(
  gateway: PluginGateway,
  id: string,
  body: Settings<typeof APPLY>,
  { actor }: Operator,
  response: ServerResponse<IncomingMessage>,
): Promise<void> {
  const { database, liveConfiguration: live } = gateway;
  const from = body.from === undefined ? undefined : readFilter('from', body.from, readTime);
  const proposal = await findProposal(database, id);
  checkAppliable(proposal);
  const newest = await newestRevision(database);
  const plan = await planChange(
    gateway,
    checked(gateway, (check) => {
      const current = newest === undefined ? live.current : check(newest.text);
      const rows = acceptedRows(proposal).filter((row) => hasOldPrice(current, row));
      if (rows.length === 0) throw fail('CONFLICT', { message: CHANGED });
      return withRows(current, rows, check);
    }),
  );
  const last = newest?.number ?? 0;
  const show = (status: number, holdsFrom: Date, number: number | null) => {
    const answer = { applied: status === 201, number, newest: number ?? last, ...plan, holdsFrom };
    sendJson(response, status, answer, etagOf(number ?? last));
  };
  if (body.dryRun) return show(200, new Date(Math.max(from?.getTime() ?? 0, Date.now())), null);
  if (!body.force) refuseObjections(plan.objections);
  const wanted = { rows: acceptedRows(proposal), from, actor, note: body.note ?? null, objections: plan.objections };
  const holdsFrom = await scheduleProposal(database, id, wanted);
  // Whatever is not applied now waits for the next look of a node.
  await applyDue(database, gateway.configurationSource.check).catch(() => undefined);
  const after = await findProposal(database, id);
  if (after.status === 'open') throw fail('CONFLICT', { message: CHANGED });
  // Load the revision on this node now. If that fails, the revision stays applied, and this node reports the failure as every node does.
  if (after.number !== null) await live.reload('revision').catch(() => undefined);
  show(201, holdsFrom, after.number);
}

const CHANGED =
  'The price of every accepted row is no longer the one that was reviewed. Nothing was applied; make a new proposal.';

/** The endpoints of proposals: prices that a public list has otherwise; docs/catalogue.md. */
export function proposalRoutes(gateway: PluginGateway): readonly Route[] {
  const { database } = gateway;
  return [
    adminRoute('POST /admin/v1/catalogue/proposals', {
      role: 'write',
      summary: 'Compare the configured prices with a public list. Nothing is changed.',
      body: NEW_PROPOSAL,
      maxBodyBytes: MAX_BODY_BYTES,
      answers: { 201: { description: 'The proposal: a row for each price that differs.', schema: PROPOSAL } },
      errors: ['BODY_TOO_LARGE', 'REPORT_UNAVAILABLE'],
      handle: async ({ body: { source, text, url }, operator }) => {
        const format = source === 'file' ? undefined : source;
        const list = await readList(gateway, originOf(text, url), format);
        const today = new Date().toISOString().slice(0, 10);
        const found = propose(gateway.configuration, list, today);
        const given = { source, format: list.format, url: url === undefined ? null : new URL(url).href, ...found };
        return createProposal(database, given, operator.actor);
      },
    }),
    adminRoute('GET /admin/v1/catalogue/proposals', {
      role: 'read',
      summary: 'The proposals of prices, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of proposals.', schema: pageShape(PROPOSAL) } },
      handle: ({ filters }) => listProposals(database, pageOf(filters)),
    }),
    adminRoute('GET /admin/v1/catalogue/proposals/{proposalId}', {
      role: 'read',
      summary: 'One proposal with its rows.',
      answers: SHOWN,
      handle: ({ params }) => findProposal(database, params.proposalId),
    }),
    adminRoute('PATCH /admin/v1/catalogue/proposals/{proposalId}', {
      role: 'write',
      summary: 'Accept and refuse rows of a proposal. While it waits for its time, rows can only be refused.',
      body: REVIEW,
      answers: SHOWN,
      errors: ['CONFLICT'],
      handle: ({ body: { accept = [], refuse = [] }, params, operator }) =>
        reviewProposal(database, params.proposalId, { accept, refuse }, operator.actor),
    }),
    adminRoute('POST /admin/v1/catalogue/proposals/{proposalId}/apply', {
      role: 'write',
      summary: 'Apply the accepted rows to the configuration of every node, at once or at a time.',
      body: APPLY,
      answers: {
        200: { description: 'What it would change (dryRun).', schema: APPLIED, headers: NEWEST },
        201: {
          description:
            'It is applied, or waits: every node has the prices within a second of `holdsFrom`. `number` is null while it waits.',
          schema: APPLIED,
          headers: NEWEST,
        },
      },
      errors: [...CHANGE_ERRORS.filter((code) => code !== 'PRECONDITION_FAILED'), 'CONFLICT'],
      handle: async ({ params, body, operator }, _request, response) => {
        refuseFiles(gateway);
        await apply(gateway, params.proposalId, body, operator, response);
      },
    }),
  ];
}
