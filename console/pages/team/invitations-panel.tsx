import { useState } from 'preact/hooks';
import type { Access, WithAccess } from '../../access';
import { ask } from '../../api';
import { Button } from '../../parts/button';
import { Checks } from '../../parts/checks';
import { DecisionDialog, decide, showDialog, showSecret } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../../parts/table';
import { Names } from '../../parts/values';
import { useResource } from '../../resource';
import type { Invitation, List, NewInvitation } from '../../shapes';
import { type Crew, roleOptions, teamOptions, textOf } from './crew';

interface Props extends WithAccess {
  readonly crew: Crew;
}

/** The open invitations; no panel if there is none. */
export function InvitationsPanel({ access, crew }: Props) {
  const invitations = useResource<List<Invitation>>(access.list('invitations'));
  if (invitations.failure === undefined && (invitations.data?.items.length ?? 0) === 0) return null;
  const teams = teamOptions(crew);
  const columns: readonly Column<Invitation>[] = [
    { title: 'E-mail address', cell: ({ email }) => email },
    { title: 'Role', cell: ({ role }) => role },
    {
      title: 'Teams',
      room: 'from-m',
      cell: ({ teamIds }) => <Names of={teamIds.map((id) => textOf(teams, id))} />,
    },
    timeColumn('Expires', ({ expiresAt }) => expiresAt),
    actionsColumn(({ id, email }) => (
      <Button look="slight danger" of={`the invitation of ${email}`} onClick={() => withdraw(access, id, email)}>
        Withdraw
      </Button>
    )),
  ];
  return (
    <TablePanel
      title="Invitations"
      hint="not accepted yet"
      caption="Open invitations, newest first"
      columns={columns}
      list={invitations}
      keyOf={({ id }) => id}
      bones={1}
    />
  );
}

function withdraw(access: Access, id: string, email: string): void {
  decide({
    title: 'Withdraw the invitation?',
    verb: 'Withdraw',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <p>
        The link for <strong>{email}</strong> stops working.
      </p>
    ),
    act: () => ask(access.one('invitations', id), { method: 'DELETE' }),
    done: `The invitation of ${email} is withdrawn.`,
  });
}

export function InviteButton(props: Props) {
  return (
    <Button look="primary" onClick={() => showDialog(<InviteDialog {...props} />)}>
      <Icon name="plus" /> Invite
    </Button>
  );
}

function InviteDialog({ access, crew }: Props) {
  const teams = teamOptions(crew);
  const [teamIds, setTeamIds] = useState<readonly string[]>([]);
  return (
    <DecisionDialog
      title="Invite a person"
      verb="Create the link"
      text={<p class="quiet">You get a link to send. It works once, for seven days.</p>}
      fields={[
        { name: 'email', label: 'E-mail address', kind: 'email', autocomplete: 'off', isRequired: true },
        { name: 'role', label: 'Role', options: roleOptions(access), value: 'member' },
      ]}
      act={(values) => ask<NewInvitation>(access.list('invitations'), { method: 'POST', body: { ...values, teamIds } })}
      onDone={(made: NewInvitation) => showLink(access, made)}
    >
      {teams.length > 0 && (
        <fieldset class="group stack">
          <legend>Teams</legend>
          <Checks search="Search teams" options={teams} chosen={teamIds} onChange={setTeamIds} />
        </fieldset>
      )}
    </DecisionDialog>
  );
}

function showLink({ memberId }: Access, { email, url, path }: NewInvitation): void {
  // An operator's page is at another listener than the console, so only the path is known there.
  const link = url ?? (memberId === undefined ? path : window.location.origin + path);
  showSecret({
    title: 'The invitation',
    name: email,
    noun: 'link',
    secret: link,
    ifLost: 'withdraw the invitation and invite again',
  });
}
