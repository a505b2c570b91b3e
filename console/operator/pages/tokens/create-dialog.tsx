import { useState } from 'preact/hooks';
import { ask } from '../../../api';
import { ActDialog } from '../../../parts/act-dialog';
import { Field } from '../../../parts/field';
import { ExpiryField, TextField } from '../../../parts/text-field';
import { fromLocalInput, toLocalInput } from '../../../times';
import type { NewToken, Role } from '../../shapes';

/** What each role allows, as in core/operators/roles.ts. Each role includes the roles before it. */
const ROLES: readonly { readonly role: Role; readonly may: string }[] = [
  { role: 'metrics', may: 'reads metrics' },
  { role: 'read', may: 'reads everything but secrets' },
  { role: 'write', may: 'changes everything but tokens' },
  { role: 'owner', may: 'creates and revokes tokens' },
];

const USUAL_DAYS = 90;
const DAY_MS = 86_400_000;

interface Props {
  readonly onCreated: (made: NewToken) => void;
  readonly onClose: () => void;
}

export function CreateDialog({ onCreated, onClose }: Props) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<string>('read');
  const [expiry, setExpiry] = useState(() => toLocalInput(new Date(Date.now() + USUAL_DAYS * DAY_MS).toISOString()));
  const body = { name, role, expiresAt: fromLocalInput(expiry) ?? null };
  return (
    <ActDialog
      title="Create a token"
      verb="Create the token"
      act={() => ask<NewToken>('/admin/v1/tokens', { method: 'POST', body })}
      onDone={onCreated}
      onClose={onClose}
      fields={['name', 'role', 'expiresAt']}
    >
      {(errorOf) => (
        <>
          <TextField
            label="Name"
            hint="The person or program that uses the token. The audit log shows it. A name is never used twice."
            isRequired
            value={name}
            onChange={setName}
            error={errorOf('name')}
          />
          <Field label="Role" hint="Each role may also do what the roles above it may." error={errorOf('role')}>
            {(control) => (
              <select {...control} value={role} onChange={(event) => setRole(event.currentTarget.value)}>
                {ROLES.map(({ role: each, may }) => (
                  <option key={each} value={each}>
                    {each}: {may}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <ExpiryField label="Expires" value={expiry} onChange={setExpiry} error={errorOf('expiresAt')} />
        </>
      )}
    </ActDialog>
  );
}
