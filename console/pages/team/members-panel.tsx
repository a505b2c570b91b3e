import { type Access, mayManage, type WithAccess } from '../../access';
import { ask } from '../../api';
import { plural } from '../../numbers';
import { Button } from '../../parts/button';
import { decide } from '../../parts/dialog';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../../parts/table';
import { Names } from '../../parts/values';
import type { ApiKey, Member, Team } from '../../shapes';
import { showDate } from '../../times';
import { type Crew, roleOptions } from './crew';
import { InviteButton } from './invitations-panel';

interface Props extends WithAccess {
  readonly crew: Crew;
  /** The active keys; undefined before they are known. */
  readonly keys: readonly ApiKey[] | undefined;
}

export function MembersPanel({ access, crew, keys }: Props) {
  const columns: readonly Column<Member>[] = [
    {
      title: 'Member',
      cell: ({ id, email, status }) => (
        <>
          <span class="key-name cut">{email}</span>
          {id === access.memberId && <span class="sub faint small">you</span>}
          {status === 'disabled' && <span class="sub small is-bad">disabled</span>}
        </>
      ),
    },
    { title: 'Role', cell: ({ role }) => role },
    { title: 'Teams', room: 'from-m', cell: ({ id }) => <Names of={teamsOf(id, crew.teams.data?.items)} /> },
    timeColumn('Since', ({ createdAt }) => createdAt, { room: 'from-m', as: showDate }),
  ];
  const actions = actionsColumn<Member>((member) => {
    // Only an owner changes owners.
    if (member.role === 'owner' && access.role !== 'owner') return null;
    return (
      <>
        <Button look="slight" of={`of ${member.email}`} onClick={() => changeRole(access, member)}>
          Change role
        </Button>
        <Button
          look="slight danger"
          of={member.email}
          onClick={() =>
            remove(
              access,
              member,
              keys?.filter(({ memberId }) => memberId === member.id),
            )
          }
        >
          {member.id === access.memberId ? 'Leave' : 'Remove'}
        </Button>
      </>
    );
  });
  return (
    <TablePanel
      title="Members"
      actions={mayManage(access) && <InviteButton access={access} crew={crew} />}
      caption="Members of the account, newest first"
      look="keys"
      columns={mayManage(access) ? [...columns, actions] : columns}
      list={crew.members}
      keyOf={({ id }) => id}
      bones={2}
      none="No person signs in to this account."
    />
  );
}

function teamsOf(memberId: string, teams: readonly Team[] = []): readonly string[] {
  return teams.filter(({ members }) => members.includes(memberId)).map(({ name }) => name);
}

function changeRole(access: Access, { id, email, role }: Member): void {
  decide({
    title: 'Change the role',
    verb: 'Change the role',
    text: (
      <p>
        <strong>{email}</strong> is {role} now.
      </p>
    ),
    fields: [{ name: 'role', label: 'Role', options: roleOptions(access), value: role }],
    act: (body) => ask(access.one('members', id), { method: 'PATCH', body }),
    done: `The role of ${email} is changed.`,
  });
}

function remove(access: Access, { id, email }: Member, keys: readonly ApiKey[] | undefined): void {
  const isSelf = id === access.memberId;
  decide({
    title: isSelf ? 'Leave the account?' : 'Remove the member?',
    verb: isSelf ? 'Leave' : 'Remove',
    isDestructive: true,
    keep: isSelf ? 'Stay' : 'Keep it',
    text: (
      <>
        <p>
          <strong>{email}</strong> can no longer sign in, and its sessions end.
        </p>
        {keys === undefined ? (
          <p>Its active keys will be revoked.</p>
        ) : keys.length === 0 ? (
          <p class="quiet">It has no active key.</p>
        ) : (
          <p>
            {plural(keys.length, 'active key')} of this member will be revoked:{' '}
            <strong>{keys.map(({ name }) => name).join(', ')}</strong>. To keep a key, give it to another member first:
            “Edit” on the page API Keys.
          </p>
        )}
        <p class="quiet">Usage records stay.</p>
      </>
    ),
    act: () => ask(access.one('members', id), { method: 'DELETE' }),
    done: `${email} is removed.`,
  });
}
