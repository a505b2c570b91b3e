import type { Answers } from '../../shapes/answers';

/** The types of the admin API's answers. */

export type Session = Answers['GET /operator/api/session'];
export type Role = Session['operator']['role'];

export type Now = Answers['GET /admin/v1/now'];
export type Minute = Now['minutes'][number];

export type Upstream = Answers['GET /admin/v1/upstreams/{name}'];
export type Tested = Answers['POST /admin/v1/upstreams/{name}/test'];
export type Comparison = Answers['GET /admin/v1/invoices/{name}/comparison'];

export type Rollout = Answers['GET /admin/v1/rollouts/{name}'];
export type Group = keyof Rollout['inStage'];
export type RolloutCounts = Rollout['inStage']['control'];

export type Account = Answers['GET /admin/v1/accounts/{accountId}'];
export type UsageRecord = Answers['GET /admin/v1/usage']['items'][number];
export type Token = Answers['GET /admin/v1/tokens']['items'][number];
export type NewToken = Answers['POST /admin/v1/tokens'];

export type ConfigStatus = Answers['GET /admin/v1/config/status'];
export type ConfigNode = ConfigStatus['nodes'][number];
/** A problem of a configuration or a request. */
export type Problem = NonNullable<ConfigNode['failure']>['problems'][number];
export type Revision = Answers['GET /admin/v1/config/revisions']['items'][number];
export type ConfigChange = Answers['POST /admin/v1/config/revisions'];

export type ShownProposal = Answers['GET /admin/v1/catalogue/proposals/{proposalId}'];
export type ShownProposalRow = ShownProposal['rows'][number];

export type Sandbox = Answers['GET /admin/v1/sandboxes']['items'][number];
export type Orphan = Answers['GET /admin/v1/sandboxes/orphans']['items'][number];
export type SandboxPlace = Answers['GET /admin/v1/sandboxes/places']['items'][number];

export type Verified = Answers['GET /admin/v1/ledger/verify'];
export type Violation = Verified['items'][number];
export type Shortfall = Answers['GET /admin/v1/ledger/shortfalls']['items'][number];
export type Change = Answers['GET /admin/v1/audit']['items'][number];
