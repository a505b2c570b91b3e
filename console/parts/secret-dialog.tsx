import { CopyButton } from './copy-button';
import { Dialog } from './dialog';

interface Props {
  readonly title: string;
  /** The name of the key or token. */
  readonly name: string;
  readonly noun: 'key' | 'token';
  readonly secret: string;
  readonly onClose: () => void;
}

/** Shows a whole secret, once: nothing can show it again. */
export function SecretDialog({ title, name, noun, secret, onClose }: Props) {
  return (
    <Dialog title={title} onClose={onClose} isFirm>
      <div class="form">
        <p>
          Copy the {noun} <strong>{name}</strong> now and keep it in a safe place. It is shown only once. If you lose
          it, revoke it and create another.
        </p>
        <div class="secret">
          <code>{secret}</code>
        </div>
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Done
          </button>
          <CopyButton text={secret} label={`Copy the ${noun}`} words={`Copy the ${noun}`} kind="primary" />
        </div>
      </div>
    </Dialog>
  );
}
