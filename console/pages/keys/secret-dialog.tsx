import { CopyButton } from '../../parts/copy-button';
import { Dialog } from '../../parts/dialog';
import type { NewApiKey } from '../../shapes';

/** The whole key, this once: nobody can show it again. */
export function SecretDialog({ made, onClose }: { readonly made: NewApiKey; readonly onClose: () => void }) {
  return (
    <Dialog title={made.previousSecretUntil === null ? 'Your new key' : 'Your new secret'} onClose={onClose} isFirm>
      <div class="form">
        <p>
          Copy <strong>{made.name}</strong> now and keep it where secrets are kept. It is not shown again: a lost key is
          revoked and replaced.
        </p>
        <div class="secret">
          <code>{made.key}</code>
        </div>
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Done
          </button>
          <CopyButton text={made.key} label="Copy the key" words="Copy the key" kind="primary" />
        </div>
      </div>
    </Dialog>
  );
}
