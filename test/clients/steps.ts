import type { Step } from '../support/client-makers';
import { NODE_INSIDE, SMALL_ID } from '../support/sandboxes';

/** Calls in order, with arguments for operations whose example in the document is not sufficient. */
export type Steps = readonly (readonly [operationId: string, step: Step])[];

const PORT = '8123';
const SANDBOX = { id: '$sandboxId' };
const COMMAND = { ...SANDBOX, commandId: '$commandId' };
const NOTE = { path: 'note.txt' };
const EVENTS = { asText: true, header: { accept: 'text/event-stream' } } as const;
const HELLO = { model: 'demo-model', messages: [{ role: 'user', content: 'Hello' }] };

const SERVE = `"${NODE_INSIDE}" -e 'require("http").createServer((q, s) => s.end("served")).listen(${PORT}, "127.0.0.1")'`;
const AWAIT_SERVER = `"${NODE_INSIDE}" -e 'const look = () => fetch("http://127.0.0.1:${PORT}").catch(look); look()'`;

function awaitState(state: string): Steps[number] {
  return ['getV1SandboxesById', { path: SANDBOX, query: { waitFor: state, waitSeconds: 60 } }];
}

export const STREAMED_CALLS: Steps = [
  ['postV1Messages', { body: { ...HELLO, max_tokens: 100, stream: true }, asText: true }],
  ['postV1ChatCompletions', { body: { ...HELLO, stream: true }, asText: true }],
  ['postV1Responses', { body: { model: 'demo-model', input: 'Hello', stream: true }, asText: true }],
];

/** Calls of a response that the vendor stores, at each base address. */
export const STORED_RESPONSES: Steps = ['', 'Default', 'Quality', 'Speed', 'Cost'].flatMap((prefix): Steps => {
  const kept = { path: { id: '$responseId' } };
  return [
    [`post${prefix}V1Responses`, { body: { model: 'demo-model', input: 'Hello' }, learn: { responseId: 'id' } }],
    [`get${prefix}V1ResponsesById`, kept],
    [`get${prefix}V1ResponsesByIdInputItems`, kept],
    [`post${prefix}V1ResponsesByIdCancel`, kept],
    [`delete${prefix}V1ResponsesById`, kept],
  ];
});

export const USAGE: Steps = [
  ['getV1Usage', { query: { limit: 1 } }],
  ['getV1UsageCsv', { query: { model: 'demo-model' }, asText: true }],
];

/** Calls through the life of a sandbox, with everything inside it. */
export const SANDBOX_LIFE: Steps = [
  ['postV1Quotes', { body: { offeringId: SMALL_ID } }],
  [
    'postV1Sandboxes',
    { body: { selection: { offeringId: SMALL_ID }, idempotencyKey: '$client' }, learn: { sandboxId: 'id' } },
  ],
  awaitState('RUNNING'),
  [
    'postV1SandboxesByIdCommands',
    { path: SANDBOX, body: { command: 'echo hello' }, learn: { commandId: 'commandId' } },
  ],
  ['postV1SandboxesByIdCommands', { path: SANDBOX, body: { command: 'echo hello' }, ...EVENTS }],
  ['getV1SandboxesByIdCommandsByCommandId', { path: COMMAND }],
  ['getV1SandboxesByIdCommandsByCommandIdLogs', { path: COMMAND }],
  ['getV1SandboxesByIdCommandsByCommandIdLogs', { path: COMMAND, query: { follow: true }, asText: true }],
  [
    'postV1SandboxesByIdCommands',
    { path: SANDBOX, body: { command: SERVE, background: true }, learn: { commandId: 'commandId' } },
  ],
  ['postV1SandboxesByIdCommands', { path: SANDBOX, body: { command: AWAIT_SERVER } }],
  [
    'getV1SandboxesByIdPortsByPort',
    { path: { ...SANDBOX, port: PORT }, learn: { token: 'headers.x-svc-sandbox-token' } },
  ],
  [
    'getV1SandboxesByIdPortsByPortProxyByRest',
    { path: { ...SANDBOX, port: PORT, rest: 'page' }, header: { 'x-svc-sandbox-token': '$token' }, asText: true },
  ],
  ['deleteV1SandboxesByIdPortsByPort', { path: { ...SANDBOX, port: PORT } }],
  ['postV1SandboxesByIdCommandsByCommandIdSignal', { path: COMMAND, body: { signal: 'SIGTERM' } }],
  ['postV1SandboxesByIdFiles', { path: SANDBOX, body: { ...NOTE, content: 'hello' } }],
  ['getV1SandboxesByIdFiles', { path: SANDBOX, query: NOTE }],
  ['putV1SandboxesByIdFilesContent', { path: SANDBOX, query: NOTE, bytes: 'written' }],
  ['getV1SandboxesByIdFilesContent', { path: SANDBOX, query: NOTE, asText: true }],
  ['getV1SandboxesByIdFilesList', { path: SANDBOX }],
  ['deleteV1SandboxesByIdFiles', { path: SANDBOX, query: NOTE }],
  ['postV1SandboxesByIdSuspend', { path: SANDBOX, body: {}, learn: { operationId: 'id' } }],
  awaitState('SUSPENDED'),
  ['getV1SandboxesByIdOperationsByOperationId', { path: { ...SANDBOX, operationId: '$operationId' } }],
  ['postV1SandboxesByIdResume', { path: SANDBOX, body: {} }],
  awaitState('RUNNING'),
  ['getV1SandboxesByIdAudit', { path: SANDBOX, query: { kind: 'operations' } }],
  ['postV1SandboxesByIdTerminate', { path: SANDBOX, body: {} }],
  awaitState('TERMINATED'),
  ['deleteV1SandboxesById', { path: SANDBOX }],
];

/** Calls that are refused, with their error codes. */
export const REFUSED: Steps = [
  ['getV1UsageByRequestId', { path: { requestId: 'no-such-request' } }],
  ['postV1Messages', { body: { ...HELLO, model: 'no-such-model', max_tokens: 100 } }],
];

export const REFUSALS = ['404 NOT_FOUND', '400 MODEL_NOT_PRICED'];

const ACCOUNT = { accountId: '$accountId' };
const USER = { userId: '$userId' };
const KEY = { keyId: '$keyId' };
const UPSTREAM = { name: 'acme' };
const AMOUNT = { amountUsd: '25.00', note: 'paid' };

export const OPERATORS_WORK: Steps = [
  ['postAdminV1Accounts', { body: { name: 'acme' }, learn: { accountId: 'id' } }],
  ['patchAdminV1AccountsByAccountId', { path: ACCOUNT, body: { markup: '1.25' } }],
  ['postAdminV1AccountsByAccountIdCredits', { path: ACCOUNT, body: { ...AMOUNT, idempotencyKey: 'credit' } }],
  ['postAdminV1AccountsByAccountIdDebits', { path: ACCOUNT, body: { ...AMOUNT, idempotencyKey: 'debit' } }],
  ['postAdminV1AccountsByAccountIdFreeze', { path: ACCOUNT }],
  ['postAdminV1AccountsByAccountIdUnfreeze', { path: ACCOUNT }],
  ['postAdminV1AccountsByAccountIdKeys', { path: ACCOUNT, body: { name: 'web' }, learn: { keyId: 'id' } }],
  ['patchAdminV1KeysByKeyId', { path: KEY, body: { balanceLimit: '20.00' } }],
  ['postAdminV1KeysByKeyIdRotate', { path: KEY, body: { graceSeconds: 60 } }],
  ['deleteAdminV1KeysByKeyId', { path: KEY }],
  ['postAdminV1Tokens', { body: { name: '$client', role: 'read', expiresAt: null }, learn: { tokenId: 'id' } }],
  ['deleteAdminV1TokensByTokenId', { path: { tokenId: '$tokenId' } }],
  [
    'postAdminV1AccountsByAccountIdUsers',
    { path: ACCOUNT, body: { email: '$email', password: 'correct horse battery' }, learn: { userId: 'id' } },
  ],
  ['postAdminV1UsersByUserIdSignInLink', { path: USER }],
  ['patchAdminV1UsersByUserId', { path: USER, body: { status: 'disabled' } }],
  ['postAdminV1LedgerRepair', {}],
  ['postAdminV1ConfigReload', {}],
  ['postAdminV1UpstreamsByNameDisable', { path: UPSTREAM, body: { reason: 'maintenance' } }],
  ['postAdminV1UpstreamsByNameEnable', { path: UPSTREAM }],
  ['postAdminV1UpstreamsByNameTest', { path: UPSTREAM, body: { model: 'demo-model', protocol: 'messages' } }],
  ['getAdminV1UsageCsv', { asText: true }],
  ['getMetrics', { asText: true }],
];

/** Operations of the admin listener that need something that this gateway lacks. They are compiled and not called. */
export const UNCALLED: readonly string[] = [
  // Needs a user that signed in with an identity provider.
  'deleteAdminV1UsersByUserIdIdentity',
  // Needs a gateway whose configuration is in its database.
  'postAdminV1ConfigRevisions',
  'postAdminV1ConfigRevisionsByRevisionRollback',
  'getAdminV1ConfigRevisionsByRevision',
  // Needs an upstream with usage reports.
  'getAdminV1InvoicesByName',
  'getAdminV1InvoicesByNameComparison',
  // Needs a lost place.
  'postAdminV1SandboxesPlacesByIdLose',
  // Needs a rollout.
  'getAdminV1RolloutsByName',
  'postAdminV1RolloutsByNamePause',
  'postAdminV1RolloutsByNameResume',
  'postAdminV1RolloutsByNamePromote',
  'postAdminV1RolloutsByNameRollback',
];
