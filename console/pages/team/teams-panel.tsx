import { useRef, useState } from 'preact/hooks';
import { type Access, mayManage, type WithAccess } from '../../access';
import { ask, withQuery } from '../../api';
import { shortUsd } from '../../money';
import { Button } from '../../parts/button';
import { Checks } from '../../parts/checks';
import { DecisionDialog, decide, showDialog } from '../../parts/dialog';
import type { Values } from '../../parts/field';
import { Icon } from '../../parts/icon';
import { actionsColumn, type Column, TablePanel } from '../../parts/table';
import { Lines, Names } from '../../parts/values';
import { useResource } from '../../resource';
import type { ApiKey, Budget, List, Team } from '../../shapes';
import { ALL, type Crew, memberOptions, textOf, WINDOWS } from './crew';
import { policyFields, readPolicy } from './policy';

interface Props extends WithAccess {
  readonly crew: Crew;
  /** The active keys. */
  readonly keys: readonly ApiKey[];
}

export function TeamsPanel({ access, crew, keys }: Props) {
  const budgets = useResource<List<Budget>>(withQuery(access.list('budgets'), { scope: 'team', limit: ALL }));
  const people = memberOptions(crew);
  const open = (team?: Team) => showDialog(<TeamDialog access={access} team={team} people={people} />);
  const columns: readonly Column<Team>[] = [
    { title: 'Team', cell: ({ name }) => <span class="key-name cut">{name}</span> },
    {
      title: 'Members',
      room: 'from-m',
      cell: ({ members }) => <Names of={members.map((id) => textOf(people, id))} />,
    },
    { title: 'Keys', isNumber: true, cell: ({ id }) => keys.filter(({ teamId }) => teamId === id).length },
    {
      title: 'Budgets',
      cell: ({ id }) => <Lines of={budgets.data?.items.filter(({ scopeId }) => scopeId === id).map(limitOf) ?? []} />,
    },
  ];
  const actions = actionsColumn<Team>((team) => (
    <>
      <Button look="slight" of={team.name} onClick={() => open(team)}>
        Edit
      </Button>
      <Button look="slight danger" of={team.name} onClick={() => remove(access, team)}>
        Remove
      </Button>
    </>
  ));
  const create = mayManage(access) && (
    <Button onClick={() => open()}>
      <Icon name="plus" /> Create a team
    </Button>
  );
  return (
    <TablePanel
      title="Teams"
      actions={create}
      caption="Teams of the account, newest first"
      look="keys"
      columns={mayManage(access) ? [...columns, actions] : columns}
      list={crew.teams}
      keyOf={({ id }) => id}
      bones={1}
      none="No team yet. A team has members, and its budgets limit what its keys spend together."
    />
  );
}

function limitOf({ limitUsd, window }: Budget): string {
  return `${shortUsd(limitUsd)} ${WINDOWS[window]}`;
}

interface DialogProps extends WithAccess {
  readonly team: Team | undefined;
  readonly people: ReturnType<typeof memberOptions>;
}

/** A dialog that creates or edits a team with its members. */
function TeamDialog({ access, team, people }: DialogProps) {
  const before: readonly string[] = team?.members ?? [];
  const [members, setMembers] = useState(before);
  const made = useRef(team?.id);
  const save = async ({ name, ...policy }: Values) => {
    made.current ??= (await ask<Team>(access.list('teams'), { method: 'POST', body: { name } })).id;
    const id = made.current;
    await ask<Team>(access.one('teams', id), { method: 'PATCH', body: { name, ...readPolicy(policy) } });
    const change = (memberId: string, request: { method: 'PUT' | 'DELETE'; body?: object }) =>
      ask(`${access.one('teams', id)}/members/${memberId}`, request);
    // The user can save again after a failure in between: a team is created once, and the other changes are safe to repeat.
    for (const each of members) if (!before.includes(each)) await change(each, { method: 'PUT', body: {} });
    for (const each of before) if (!members.includes(each)) await change(each, { method: 'DELETE' });
  };
  return (
    <DecisionDialog
      title={team === undefined ? 'Create a team' : 'Edit the team'}
      verb={team === undefined ? 'Create the team' : 'Save'}
      fields={[{ name: 'name', label: 'Name', isRequired: true, value: team?.name ?? '' }, ...policyFields(team)]}
      act={save}
      done="The team is saved."
    >
      <fieldset class="group stack">
        <legend>Members</legend>
        <Checks search="Search members" options={people} chosen={members} onChange={setMembers} />
        <p class="quiet small">Keys stay in their team when a member leaves it.</p>
      </fieldset>
    </DecisionDialog>
  );
}

function remove(access: Access, { id, name }: Team): void {
  decide({
    title: 'Remove the team?',
    verb: 'Remove the team',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <>
        <p>
          <strong>{name}</strong> and its budgets end. Its members stay in the account, and usage records stay.
        </p>
        <p class="quiet">A team with active keys cannot be removed: revoke them or move them to another team first.</p>
      </>
    ),
    act: () => ask(access.one('teams', id), { method: 'DELETE' }),
    done: `The team ${name} is removed.`,
  });
}
