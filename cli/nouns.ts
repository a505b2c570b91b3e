import { Option } from 'commander';
import { ROLES } from '../core/operators/roles';
import { MEMBER_ROLE_NAMES, MEMBER_ROLES } from '../core/sign-in/member-roles';
import { credit, debit } from './adjustment';
import { BUDGET_CHANGES, BUDGETS_OF_SCOPE, budgetChanges, NEW_BUDGET, newBudget } from './budget-fields';
import { diffCatalogue } from './catalogue';
import * as columns from './columns';
import { type Verb, verb } from './command';
import {
  applyConfig,
  configSchema,
  configStatus,
  diffConfig,
  reloadConfig,
  rollbackConfig,
  showConfig,
  validateConfig,
} from './config';
import { explainDialects, explainMembers, explainSettings } from './explain';
import { Failure } from './failure';
import { compareInvoice, fetchInvoice } from './invoices';
import {
  DEMANDS,
  EXPIRY,
  FROM,
  KEY_CHANGES,
  keyChanges,
  NEW_KEY,
  newKey,
  orNull,
  REQUIRE_TAGS,
  requiredTags,
  someOf,
  TO,
  toExpiry,
  toSeconds,
  toTime,
} from './key-fields';
import verifyLedger from './ledger';
import type { Output } from './output';
import newPlugin from './plugin';
import { PROPOSAL_VERBS } from './proposals';
import rolloutStatus, { pauseRollout, promoteRollout, resumeRollout, rollbackRollout } from './rollout';
import recordUpstream from './upstreams';
import { exportUsage, FILTERS, filtersOf, replayUsage, showTags, usageReport, usageTotals } from './usage';
import { createUser, setPassword } from './users';

const { ACCOUNT, BALANCE, KEY, USER, SANDBOX, ORPHAN, PLACE, UPSTREAM, TEST, ROLLOUT, RECORD, ATTEMPT } = columns;
const {
  MEMBER,
  INVITATION,
  TEAM,
  DEMANDED,
  REQUIRED,
  BUDGET,
  EVENT,
  WEBHOOK,
  DELIVERY,
  TOKEN,
  CHANGE,
  REVISION,
  ACTIVE_REVISION,
} = columns;

const PAGES = { pages: true } as const;
const option = (flags: string, summary: string) => new Option(flags, summary);

/** Lists roles with what each may do, for the help. */
const explain = (roles: Readonly<Record<string, string>>) =>
  Object.entries(roles)
    .map(([role, may]) => `${role} (${may})`)
    .join(', ');

const MEMBER_ROLE = option('--role <role>', `what the member may do: ${explain(MEMBER_ROLES)}`)
  .choices(MEMBER_ROLE_NAMES)
  .makeOptionMandatory();

/** Says how to complete a link that is only a path. */
const noteLink = ({ url }: { readonly url: string | null }, { note }: Pick<Output, 'note'>) => {
  if (url === null)
    note('PUBLIC_URL is not set, so the link is a path: put the address of the public listener before it.');
};

interface Noun {
  readonly summary: string;
  readonly verbs: readonly Verb[];
}

const WEBHOOK_VERBS: readonly Verb[] = [
  verb(
    'POST /admin/v1/accounts/{accountId}/webhooks',
    'create <account> <url>',
    'create a webhook; its secret is shown only once',
    { ...WEBHOOK, secret: ({ secret }) => secret },
    {
      options: [option('--types <types...>', 'the types of events that it receives; default: all')],
      body: ({ types }, url) => ({ url, types }),
      after: (_webhook, { note }) => note('Store the secret now: it cannot be shown again.'),
    },
  ),
  verb(
    'GET /admin/v1/accounts/{accountId}/webhooks',
    'list <account>',
    'list the webhooks of an account, newest first',
    WEBHOOK,
    PAGES,
  ),
  ...(['enable', 'disable'] as const).map((name) =>
    verb(
      'PATCH /admin/v1/webhooks/{webhookId}',
      `${name} <webhook>`,
      { enable: 'enable a webhook: it continues with what is pending', disable: 'disable a webhook' }[name],
      WEBHOOK,
      { body: () => ({ status: name === 'enable' ? 'active' : 'disabled' }) },
    ),
  ),
  verb(
    'POST /admin/v1/webhooks/{webhookId}/rotate',
    'rotate <webhook>',
    'give a webhook a new secret; it is shown only once',
    { ...WEBHOOK, secret: ({ secret }) => secret },
    {
      options: [
        option('--grace <time>', 'how long the previous secret signs too, such as 24h or 7d; 0 ends it').default('24h'),
      ],
      body: ({ grace }) => ({ graceSeconds: toSeconds(String(grace)) }),
      after: (_webhook, { note }) => note('Store the secret now: it cannot be shown again.'),
    },
  ),
  verb('POST /admin/v1/webhooks/{webhookId}/test', 'test <webhook>', 'send a signed test event', DELIVERY),
  verb(
    'GET /admin/v1/webhooks/{webhookId}/deliveries',
    'deliveries <webhook>',
    'list what a webhook has received or is about to, newest first',
    DELIVERY,
    PAGES,
  ),
  verb(
    'POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
    'redeliver <webhook> <delivery>',
    'send a delivery again, with the same id and body',
    DELIVERY,
  ),
  verb('DELETE /admin/v1/webhooks/{webhookId}', 'remove <webhook>', 'remove a webhook with its deliveries', WEBHOOK),
];

/** All nouns with their verbs, in the order of the help. A verb has its own file if it makes more than one request or prints more than one table. */
export const NOUNS: Readonly<Record<string, Noun>> = {
  accounts: {
    summary: 'accounts, which pay for calls',
    verbs: [
      verb('POST /admin/v1/accounts', 'create <name>', 'create an account', ACCOUNT, {
        options: [
          option('--markup <markup>', 'the markup of its keys: a factor such as 1.25, or a list under customerPrices'),
        ],
        body: ({ markup }, name) => ({ name, markup }),
      }),
      verb('GET /admin/v1/accounts', 'list', 'list accounts, newest first', ACCOUNT, PAGES),
      verb('GET /admin/v1/accounts/{accountId}', 'show <account>', 'show an account with its balance', {
        ...ACCOUNT,
        ...DEMANDED,
      }),
      verb(
        'PATCH /admin/v1/accounts/{accountId}',
        'update <account>',
        'rename an account, or change the markup of its keys, what they demand of upstreams, or the balance that counts as low',
        { ...ACCOUNT, ...DEMANDED },
        {
          options: [
            option('--name <name>', 'its new name'),
            option('--markup <markup>', 'a factor such as 1.25, or a list under customerPrices; "none" removes it'),
            option('--balance-low <usd>', 'tell the account each time its balance falls below this; "none" removes it'),
            DEMANDS,
          ],
          body: ({ name, markup, balanceLow, require }) =>
            someOf(
              { name, markup: orNull(markup), balanceLowUsd: orNull(balanceLow), require: orNull(require) },
              'Give --name, --markup, --balance-low or --require.',
            ),
        },
      ),
      verb(
        'POST /admin/v1/accounts/{accountId}/freeze',
        'freeze <account>',
        'freeze an account: refuse all its further calls',
        ACCOUNT,
      ),
      verb(
        'POST /admin/v1/accounts/{accountId}/unfreeze',
        'unfreeze <account>',
        'unfreeze an account: accept its calls again',
        ACCOUNT,
      ),
    ],
  },
  credits: { summary: 'add money to accounts', verbs: [credit] },
  debits: { summary: 'debit money from accounts', verbs: [debit] },
  keys: {
    summary: 'API keys of an account',
    verbs: [
      verb(
        'POST /admin/v1/accounts/{accountId}/keys',
        'create <account> <name>',
        'create an API key; it is shown only once',
        { ...KEY, ...REQUIRED, key: ({ key }) => key },
        {
          options: NEW_KEY,
          body: newKey,
          after: (_key, { note }) => note('Store the key now: it cannot be shown again.'),
        },
      ),
      verb(
        'GET /admin/v1/accounts/{accountId}/keys',
        'list <account>',
        'list the keys of an account, newest first',
        KEY,
        PAGES,
      ),
      verb('DELETE /admin/v1/keys/{keyId}', 'revoke <key>', 'revoke a key by its id; its next call is refused', KEY),
      verb(
        'PATCH /admin/v1/keys/{keyId}',
        'limit <key> <usd>',
        'set the spending limit of a key; "none" removes it',
        KEY,
        { body: (_options, usd) => ({ balanceLimit: orNull(usd) }) },
      ),
      verb(
        'PATCH /admin/v1/keys/{keyId}',
        'update <key>',
        'rename a key, or change its limits, team, member, required tags, demands, markup, expiry, models and addresses; "none" removes',
        { ...KEY, ...REQUIRED },
        { options: KEY_CHANGES, body: keyChanges },
      ),
      verb(
        'POST /admin/v1/keys/{keyId}/rotate',
        'rotate <key>',
        'give a key a new secret, by its id; it is shown only once',
        { ...KEY, secret: ({ key }) => key },
        {
          options: [
            option(
              '--grace <time>',
              'how long the previous secret keeps working, such as 24h or 7d; 0 ends it at once',
            ).default('24h'),
          ],
          body: ({ grace }) => ({ graceSeconds: toSeconds(String(grace)) }),
          after: ({ previousSecretUntil }, { note }) =>
            note(
              `Store the secret now: it cannot be shown again. The previous one works until ${previousSecretUntil}.`,
            ),
        },
      ),
    ],
  },
  users: {
    summary: 'users of the console',
    verbs: [
      createUser,
      verb(
        'GET /admin/v1/accounts/{accountId}/users',
        'list <account>',
        'list the users of an account, newest first',
        USER,
        PAGES,
      ),
      setPassword,
      verb(
        'POST /admin/v1/users/{userId}/sign-in-link',
        'link <user>',
        'create a link that signs a user in to the console once, within an hour',
        { link: ({ url, path }) => url ?? path, expires: ({ expiresAt }) => expiresAt },
        { after: noteLink },
      ),
      verb(
        'DELETE /admin/v1/users/{userId}/identity',
        'unbind <user>',
        'end the sessions of a user and let another identity of the provider with the same address sign in',
        USER,
      ),
      verb(
        'PATCH /admin/v1/users/{userId}',
        'disable <user>',
        'disable a user: end their sessions and refuse their sign-ins',
        USER,
        { body: () => ({ status: 'disabled' }) },
      ),
      verb('PATCH /admin/v1/users/{userId}', 'enable <user>', 'enable a disabled user', USER, {
        body: () => ({ status: 'active' }),
      }),
    ],
  },
  members: {
    summary: 'members of an account: its users, with their roles, and invitations of new ones',
    verbs: [
      verb(
        'GET /admin/v1/accounts/{accountId}/users',
        'list <account>',
        'list the members of an account, newest first',
        MEMBER,
        PAGES,
      ),
      verb(
        'POST /admin/v1/accounts/{accountId}/invitations',
        'invite <account> <email>',
        'invite a person by a link that works once, for seven days; it is shown only once',
        INVITATION,
        {
          options: [MEMBER_ROLE, option('--teams <teams...>', 'the ids of the teams that the member joins')],
          body: ({ role, teams }, email) => ({ email, role, teamIds: teams }),
          after: noteLink,
        },
      ),
      verb('PATCH /admin/v1/users/{userId}', 'update <member>', 'change the role of a member', MEMBER, {
        options: [MEMBER_ROLE],
        body: ({ role }) => ({ role }),
      }),
      verb(
        'DELETE /admin/v1/users/{userId}',
        'remove <member>',
        'remove a member: revoke the keys and end the sessions of the member',
        MEMBER,
      ),
    ],
  },
  teams: {
    summary: 'teams of an account, with the users and keys in them',
    verbs: [
      verb(
        'POST /admin/v1/accounts/{accountId}/teams',
        'create <account> <name>',
        'create a team',
        { ...TEAM, ...REQUIRED },
        {
          options: [REQUIRE_TAGS],
          body: ({ requireTags }, name) => ({ name, requiredTags: requireTags }),
        },
      ),
      verb(
        'GET /admin/v1/accounts/{accountId}/teams',
        'list <account>',
        'list the teams of an account, newest first',
        TEAM,
        PAGES,
      ),
      verb(
        'PATCH /admin/v1/teams/{teamId}',
        'update <team>',
        'rename a team, or change the tags that its keys require or what they demand of upstreams; "none" removes',
        { ...TEAM, ...REQUIRED },
        {
          options: [option('--name <name>', 'its new name'), REQUIRE_TAGS, DEMANDS],
          body: ({ name, requireTags, require }) =>
            someOf(
              { name, requiredTags: requiredTags(requireTags), require: orNull(require) },
              'Give --name, --require-tags or --require.',
            ),
        },
      ),
      verb(
        'PUT /admin/v1/teams/{teamId}/members/{userId}',
        'add <team> <member>',
        'add a member to a team: a user of its account',
        TEAM,
      ),
      verb(
        'DELETE /admin/v1/teams/{teamId}/members/{userId}',
        'leave <team> <member>',
        'remove a member from a team',
        TEAM,
      ),
      verb(
        'DELETE /admin/v1/teams/{teamId}',
        'remove <team>',
        'remove a team with its budgets; refused while it has active keys',
        TEAM,
      ),
    ],
  },
  budgets: {
    summary: 'limits of what an account, team, member, key or tag may spend',
    verbs: [
      verb(
        'POST /admin/v1/accounts/{accountId}/budgets',
        'create <account>',
        'create a budget; it counts what its window has spent already',
        BUDGET,
        { options: NEW_BUDGET, body: newBudget },
      ),
      verb(
        'GET /admin/v1/accounts/{accountId}/budgets',
        'list <account>',
        'list the budgets of an account with what each has left, newest first',
        BUDGET,
        { ...PAGES, options: [BUDGETS_OF_SCOPE] },
      ),
      verb('GET /admin/v1/budgets/{budgetId}', 'show <budget>', 'show a budget with what it has left', BUDGET),
      verb(
        'PATCH /admin/v1/budgets/{budgetId}',
        'update <budget>',
        'change the limit or the thresholds of a budget',
        BUDGET,
        { options: BUDGET_CHANGES, body: budgetChanges },
      ),
      verb('DELETE /admin/v1/budgets/{budgetId}', 'remove <budget>', 'remove a budget: its limit ends', BUDGET),
    ],
  },
  events: {
    summary: 'what accounts and operators are alerted to',
    verbs: [
      verb('GET /admin/v1/events', 'list', 'list events of operators and of all accounts, oldest first', EVENT, {
        pages: 'after',
        options: [option('--account <id>', 'only those of this account')],
      }),
    ],
  },
  webhooks: { summary: 'addresses that receive the events of an account', verbs: WEBHOOK_VERBS },
  sandboxes: {
    summary: 'sandboxes of all accounts, their places, and orphaned instances at suppliers',
    verbs: [
      verb(
        'GET /admin/v1/sandboxes',
        'list',
        'list sandboxes, newest first; active ones unless a state is asked for',
        SANDBOX,
        {
          ...PAGES,
          options: [
            option('--account <id>', 'of this account'),
            option('--state <state>', 'in this state, such as RUNNING; ALL for every one'),
          ],
        },
      ),
      verb(
        'GET /admin/v1/sandboxes/orphans',
        'orphans',
        'list instances at suppliers that belong to no sandbox, newest first',
        ORPHAN,
        PAGES,
      ),
      verb(
        'GET /admin/v1/sandboxes/places',
        'places',
        'list places of sandboxes that only some nodes can reach, last seen first',
        PLACE,
      ),
      verb(
        'POST /admin/v1/sandboxes/places/{id}/lose',
        'lose <place>',
        'declare that the node of a place is permanently lost: its sandboxes end as lost, billed to their last confirmation',
        PLACE,
      ),
    ],
  },
  upstreams: {
    summary: 'upstreams and their health',
    verbs: [
      verb(
        'GET /admin/v1/upstreams',
        'list',
        'list upstreams with health, latency, prices and whether they are disabled or ejected',
        UPSTREAM,
      ),
      verb(
        'POST /admin/v1/upstreams/{name}/test',
        'test <name>',
        'make one small real call to an upstream; exit status 1 if it does not answer',
        TEST,
        {
          options: [
            option('--model <name>', "the upstream's own name of a model; default: its cheapest"),
            option('--protocol <protocol>', 'messages or chat'),
            option('--credential <name>', 'the name of one of its credentials; default: one that calls would use now'),
          ],
          body: (options) => options,
          after: ({ ok, upstream }) => {
            if (!ok) throw new Failure(`The upstream "${upstream}" does not answer.`);
          },
        },
      ),
      recordUpstream,
      verb(
        'POST /admin/v1/upstreams/{name}/disable',
        'disable <name>',
        'disable an upstream on every node until it is enabled',
        UPSTREAM,
        { options: [option('--reason <text>', 'the reason, for other operators')], body: (options) => options },
      ),
      verb(
        'POST /admin/v1/upstreams/{name}/enable',
        'enable <name>',
        'enable a disabled upstream, and end its ejection',
        UPSTREAM,
      ),
    ],
  },
  rollout: {
    summary: 'changes that are rolled out in stages',
    verbs: [
      verb('GET /admin/v1/rollouts', 'list', 'list rollouts with their progress', ROLLOUT),
      ...[rolloutStatus, pauseRollout, resumeRollout, promoteRollout, rollbackRollout],
    ],
  },
  ledger: { summary: 'checks of the ledger', verbs: [verifyLedger] },
  usage: {
    summary: 'usage records: what calls used and cost',
    verbs: [
      verb('GET /admin/v1/usage', 'list', 'list usage records, newest first', RECORD, {
        ...PAGES,
        options: FILTERS,
        query: filtersOf,
      }),
      verb(
        'GET /admin/v1/usage/{requestId}',
        'show <request>',
        'show the usage record of one call by its X-SVC-Request-Id',
        {
          ...RECORD,
          error: ({ errorCode }) => errorCode,
          attempts: ({ attempts }) => attempts,
          session: ({ sessionId }) => sessionId,
          agent: ({ agentId }) => agentId,
          'end user': ({ endUserId }) => endUserId,
          team: ({ teamId }) => teamId,
          member: ({ memberId }) => memberId,
          tags: ({ tags }) => tags && showTags(tags),
          region: ({ region }) => region,
          demands: ({ demands }) => demands,
        },
      ),
      usageTotals,
      usageReport,
      verb(
        'GET /admin/v1/usage/{requestId}/attempts',
        'attempts <request>',
        'list the requests to upstreams that one call made, with what each cost the platform',
        ATTEMPT,
      ),
      exportUsage,
      replayUsage,
    ],
  },
  invoices: { summary: 'invoices of vendors, compared with the usage records', verbs: [fetchInvoice, compareInvoice] },
  tokens: {
    summary: 'tokens of operators for the admin listener',
    verbs: [
      verb(
        'POST /admin/v1/tokens',
        'create <name>',
        'create a token for an operator; it is shown only once',
        { ...TOKEN, token: ({ token }) => token },
        {
          options: [
            option(
              '--role <role>',
              `each includes the rights of those before it: ${explain(ROLES)}`,
            ).makeOptionMandatory(),
            option('--expires <when>', EXPIRY).makeOptionMandatory(),
          ],
          body: ({ role, expires }, name) => ({ name, role, expiresAt: toExpiry(String(expires)) }),
          after: (_token, { note }) => note('Store the token now: it cannot be shown again.'),
        },
      ),
      verb('GET /admin/v1/tokens', 'list', 'list the tokens of operators, newest first', TOKEN, PAGES),
      verb(
        'DELETE /admin/v1/tokens/{tokenId}',
        'revoke <token>',
        'revoke a token by its id; no node accepts it any more',
        TOKEN,
      ),
    ],
  },
  audit: {
    summary: 'the audit log',
    verbs: [
      verb('GET /admin/v1/audit', 'list', 'list changes of operators and users, newest first', CHANGE, {
        ...PAGES,
        options: [
          option('--subject <subject>', 'only changes of this subject, such as key:<id> or account:<id>'),
          option('--actor <actor>', 'only changes by this actor, such as admin or user:<id>'),
          option('--action <action>', 'only this action, such as key.revoke'),
          ...[FROM, TO],
        ],
        query: ({ from, to, ...filters }) => ({ ...filters, from: toTime(from), to: toTime(to) }),
      }),
    ],
  },
  catalogue: {
    summary: 'prices of public lists and vendors, compared with the configuration',
    verbs: [...PROPOSAL_VERBS, diffCatalogue],
  },
  config: {
    summary: 'configuration files and applied revisions',
    verbs: [
      ...[validateConfig, diffConfig, configSchema, applyConfig, rollbackConfig],
      verb(
        'GET /admin/v1/config/revisions',
        'history',
        'list the applied configurations, newest first',
        REVISION,
        PAGES,
      ),
      ...[showConfig, configStatus, reloadConfig],
      verb(
        'GET /admin/v1/config/revision',
        'revision',
        'show the active configuration, and why the last reload was rejected',
        ACTIVE_REVISION,
      ),
    ],
  },
  explain: {
    summary: 'what the gateway knows of requests, for the hold and for translating them, and of its settings',
    verbs: [explainMembers, explainDialects, explainSettings],
  },
  plugin: { summary: 'your own packages', verbs: [newPlugin] },
};

/** The command that shows a balance: a verb that follows the program's name without a noun. */
export const showBalance = verb(
  'GET /admin/v1/accounts/{accountId}',
  'balance <account>',
  'show what an account owns, what is held, and what it can spend',
  BALANCE,
  { members: ['balanceUsd', 'heldUsd', 'availableUsd'] },
);
