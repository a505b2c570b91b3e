import { ask } from '../../api';
import { ActDialog } from '../../parts/act-dialog';
import type { ApiKey } from '../../shapes';
import { showAgo } from '../../times';
import { KeyName } from './key-name';

interface Props {
  readonly apiKey: ApiKey;
  /** The path of the key. */
  readonly path: string;
  readonly onRevoked: () => void;
  readonly onClose: () => void;
}

export function RevokeDialog({ apiKey, path, onRevoked, onClose }: Props) {
  return (
    <ActDialog
      title="Revoke the key?"
      verb="Revoke the key"
      isDestructive
      keep="Keep it"
      done={`${apiKey.name} is revoked.`}
      act={() => ask(path, { method: 'DELETE' })}
      onDone={onRevoked}
      onClose={onClose}
    >
      {() => (
        <>
          <p>
            <KeyName apiKey={apiKey} /> {lastUse(apiKey)}
          </p>
          <p class="quiet">
            The gateway refuses its next call. A revoked key cannot be used again. Its usage records stay.
          </p>
        </>
      )}
    </ActDialog>
  );
}

/** Describes the last use of a key. The admin API does not report it to operators. */
function lastUse({ lastUsedAt }: ApiKey): string {
  if (lastUsedAt === undefined) return '';
  return lastUsedAt === null ? 'was never used.' : `was last used ${showAgo(lastUsedAt)}.`;
}
