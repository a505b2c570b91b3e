import type { Access } from '../../access';
import { withQuery } from '../../api';
import { type Resource, useResource } from '../../resource';
import type { Budget, List, Member, MemberRole, Team } from '../../shapes';

/** The largest number of members, teams or keys that a page reads to show their names. */
export const ALL = 1_000;

/** The members and teams of an account. */
export interface Crew {
  readonly members: Resource<List<Member>>;
  readonly teams: Resource<List<Team>>;
}

export function useCrew(access: Access): Crew {
  return {
    members: useResource<List<Member>>(withQuery(access.list('members'), { limit: ALL })),
    teams: useResource<List<Team>>(withQuery(access.list('teams'), { limit: ALL })),
  };
}

interface Option {
  readonly value: string;
  readonly text: string;
}

export function teamOptions({ teams }: Pick<Crew, 'teams'>): readonly Option[] {
  return teams.data?.items.map(({ id, name }) => ({ value: id, text: name })) ?? [];
}

export function memberOptions({ members }: Pick<Crew, 'members'>): readonly Option[] {
  return members.data?.items.map(({ id, email }) => ({ value: id, text: email })) ?? [];
}

/** Returns the text of an option; the first digits of its id if there is no such option any more. */
export function textOf(options: readonly Option[], value: string): string {
  return options.find((each) => each.value === value)?.text ?? value.slice(0, 8);
}

/** What each role may do, as in the gateway's table of roles. */
const ROLES: Readonly<Record<MemberRole, string>> = {
  owner: 'everything',
  admin: 'everything, except owners',
  member: 'its own keys and usage',
  viewer: 'reads everything, changes nothing',
};

/** Returns the roles that a user may give. Only an owner makes owners. */
export function roleOptions({ role }: Access): readonly Option[] {
  const roles = (Object.keys(ROLES) as MemberRole[]).filter((each) => each !== 'owner' || role === 'owner');
  return roles.map((value) => ({ value, text: `${value}: ${ROLES[value]}` }));
}

export const WINDOWS: Readonly<Record<Budget['window'], string>> = {
  day: 'per day',
  week: 'per week',
  month: 'per month',
  total: 'in total',
};

export const SCOPES: Readonly<Record<Budget['scope'], string>> = {
  account: 'Account',
  team: 'Team',
  member: 'Member',
  key: 'Key',
  tag: 'Tag',
};
