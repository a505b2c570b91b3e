import { SecretDialog } from '../../parts/secret-dialog';
import type { ApiKey, NewApiKey } from '../../shapes';
import { KeyDialog } from './key-dialog';
import { RevokeDialog } from './revoke-dialog';
import { RotateDialog } from './rotate-dialog';

/** The open dialog, and its key. */
export type KeyTask =
  | { readonly task: 'create' }
  | { readonly task: 'edit' | 'rotate' | 'revoke'; readonly key: ApiKey }
  | { readonly task: 'secret'; readonly made: NewApiKey };

interface Props {
  readonly task: KeyTask | undefined;
  /** The path at which keys are created. */
  readonly path: string;
  readonly pathOf: (key: ApiKey) => string;
  /** The names of the models to which a key can be limited. */
  readonly models: readonly string[];
  readonly onTask: (task: KeyTask | undefined) => void;
  readonly onChanged: () => void;
}

/** The dialogs that create a key, show its secret once, edit, rotate and revoke it. */
export function KeyDialogs({ task, path, pathOf, models, onTask, onChanged }: Props) {
  const close = () => onTask(undefined);
  const closeAndReload = () => {
    close();
    onChanged();
  };
  const showSecret = (made: NewApiKey) => {
    onTask({ task: 'secret', made });
    onChanged();
  };
  switch (task?.task) {
    case 'create':
    case 'edit': {
      const apiKey = task.task === 'edit' ? task.key : undefined;
      return (
        <KeyDialog
          apiKey={apiKey}
          path={apiKey === undefined ? path : pathOf(apiKey)}
          models={models}
          onSaved={(saved) => ('key' in saved ? showSecret(saved) : closeAndReload())}
          onClose={close}
        />
      );
    }
    case 'rotate':
      return <RotateDialog apiKey={task.key} path={pathOf(task.key)} onMade={showSecret} onClose={close} />;
    case 'revoke':
      return <RevokeDialog apiKey={task.key} path={pathOf(task.key)} onRevoked={closeAndReload} onClose={close} />;
    case 'secret':
      return (
        <SecretDialog
          title={task.made.previousSecretUntil === null ? 'Your new key' : 'Your new secret'}
          name={task.made.name}
          noun="key"
          secret={task.made.key}
          onClose={close}
        />
      );
    default:
      return null;
  }
}
