import type { Answers } from '../shapes/answers';

/** The types of the console API's answers. Amounts of money stay decimal text. */

export type Usd = string;
export type Time = string;

/** One page of a list. */
export interface List<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export type SignInMethods = Answers['GET /console/api/sign-in'];
export type Session = Answers['GET /console/api/session'];

export type Overview = Answers['GET /console/api/overview'];
export type Day = Overview['spend']['days'][number];
export type Catalog = Answers['GET /console/api/catalog'];
export type Model = Catalog['models'][number];
export type Upstream = Catalog['upstreams'][number];
export type Protocol = Model['protocols'][number];

export type UsageRecord = Answers['GET /console/api/usage']['items'][number];
export type ExplainedRecord = Answers['GET /console/api/usage/{requestId}'];
export type Price = NonNullable<ExplainedRecord['price']>;
export type Pass = NonNullable<UsageRecord['passes']>[number];
export type Totals = Answers['GET /console/api/usage/totals'];
export type Percentiles = Totals['firstTokenMs'];
export type Series = Answers['GET /console/api/usage/series'];
export type Interval = Series['interval'];

type OwnKey = Answers['GET /console/api/keys/{keyId}'];
/** A key as both pages show it. `lastUsedAt` is absent on the operators' page, because the admin API does not report it. */
export type ApiKey = Omit<OwnKey, 'lastUsedAt'> & Partial<Pick<OwnKey, 'lastUsedAt'>>;
export type NewApiKey = ApiKey & Pick<Answers['POST /console/api/keys'], 'key'>;

export type SandboxList = Answers['GET /console/api/sandboxes'];
export type Sandbox = SandboxList['items'][number];
export type ObservedState = Sandbox['observedState'];
export type SandboxRecord = Answers['GET /console/api/sandboxes/{id}'];
export type Operation = SandboxRecord['operations'][number];
export type SandboxEvent = SandboxRecord['events'][number];
export type Segment = SandboxRecord['usageSegments'][number];
export type Period = SandboxRecord['billingPeriods'][number];

export type MemberRole = Session['user']['role'];
export type Member = Answers['GET /console/api/members']['items'][number];
export type Invitation = Answers['GET /console/api/invitations']['items'][number];
export type NewInvitation = Answers['POST /console/api/invitations'];
export type Team = Answers['GET /console/api/teams']['items'][number];
export type Budget = Answers['GET /console/api/budgets']['items'][number];
export type AccountSettings = Answers['GET /console/api/account'];
export type AccountEvent = Answers['GET /console/api/events']['items'][number];
export type Webhook = Answers['GET /console/api/webhooks']['items'][number];
export type NewWebhook = Answers['POST /console/api/webhooks'];
export type Delivery = Answers['GET /console/api/webhooks/{webhookId}/deliveries']['items'][number];
