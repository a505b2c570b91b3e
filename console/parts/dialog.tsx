import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Failure } from '../api';
import { toFailure } from '../resource';
import { place } from '../router';
import { announce } from './announce';
import { Button, CopyButton } from './button';
import { Fields, type FormPart, firstValuesOf, givenValuesOf, type Values } from './field';
import { Icon } from './icon';
import { Failed } from './states';

const shown = signal<ComponentChildren>(null);

/** Opens a dialog over the page. The dialog closes when the user goes to another page. */
export function showDialog(dialog: ComponentChildren): void {
  shown.value = dialog;
}

export function hide(): void {
  shown.value = null;
}

export function Dialogs() {
  const { path } = place.value;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the dialog
  useEffect(() => hide, [path]);
  return <>{shown.value}</>;
}

interface Props {
  readonly title: string;
  /** Called when the user closes the dialog with Escape, the cross, or a click outside. */
  readonly onClose?: () => void;
  /** `sheet`: a panel at the side, for one of many items. Default: a box in the middle, for one decision. */
  readonly kind?: 'sheet';
  /** Whether the user cannot close the dialog by accident: it has no cross and ignores Escape. */
  readonly isFirm?: boolean;
  readonly children: ComponentChildren;
}

/** A modal dialog of the browser, which keeps the focus inside and returns it after closing. */
export function Dialog({ title, onClose = hide, kind, isFirm = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isLeft = useRef(false);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // Focuses the first field or button, because the browser would focus the cross.
    element?.querySelector<HTMLElement>('input, select, .primary')?.focus();
    return () => {
      isLeft.current = true;
      element?.close();
    };
  }, []);
  /** Handles a repeated request to close, such as a phone's back gesture. The browser then closes the dialog even if `cancel` was prevented. */
  const onClosed = () => {
    if (isLeft.current) return;
    if (isFirm) dialog.current?.showModal();
    else onClose();
  };

  return (
    <dialog
      ref={dialog}
      class={kind ?? 'box'}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        if (!isFirm) onClose();
      }}
      onClose={onClosed}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && isFirm) event.preventDefault();
      }}
      onClick={(event) => {
        if (event.target === dialog.current && !isFirm) onClose();
      }}
    >
      <div class="dialog-inside">
        <header class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          {!isFirm && (
            <button type="button" class="button icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

/** Runs an action, such as submitting a form. Returns its failure, and whether it still runs. */
export function useAct(act: () => Promise<unknown>) {
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const run = async (event?: Event) => {
    event?.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await act();
    } catch (error) {
      setFailure(toFailure(error));
    }
    setBusy(false);
  };
  return { failure, isBusy, run };
}

interface Decision<R> {
  readonly title: string;
  /** The label of the button that confirms. */
  readonly verb: string;
  readonly isDestructive?: boolean;
  /** Whether all required input outside the fields is complete. The button is disabled otherwise. */
  readonly isComplete?: boolean;
  /** The label of the button that cancels. Default: `Cancel`. */
  readonly keep?: string;
  /** An explanation of what will happen. */
  readonly text?: ComponentChildren;
  readonly fields?: readonly FormPart[];
  readonly children?: ComponentChildren;
  /** Performs the decision with the values of all non-empty fields. */
  readonly act: (values: Values) => Promise<R>;
  /** The text that screen readers announce after success. */
  readonly done?: string;
  readonly onDone?: (result: R) => void;
}

/** Opens a dialog for one decision. It explains the effect, performs it, and shows the error in the dialog if it fails. */
export function decide<R>(decision: Decision<R>): void {
  showDialog(<DecisionDialog {...decision} />);
}

export function DecisionDialog<R>(decision: Decision<R>) {
  const { title, verb, isDestructive = false, isComplete = true, keep = 'Cancel', text, fields = [] } = decision;
  const [typed, setTyped] = useState<Values>({});
  // Fields whose choices are still loading may appear later, each with its own first value.
  const values = { ...firstValuesOf(fields), ...typed };
  const { failure, isBusy, run } = useAct(async () => {
    const result = await decision.act(givenValuesOf(fields, values));
    if (decision.done !== undefined) announce(decision.done);
    hide();
    decision.onDone?.(result);
  });
  // Removes an index, because an error of `allowedAddresses[2]` belongs to the field `allowedAddresses`.
  const wrongField = failure?.more.param?.replace(/\[.*$/, '') ?? '';
  return (
    <Dialog title={title}>
      <form class="form stack" onSubmit={run}>
        {text}
        <Fields
          parts={fields}
          values={values}
          onChange={setTyped}
          errorOf={(name) => (name === wrongField ? failure?.message : undefined)}
        />
        {decision.children}
        {failure !== undefined && !(wrongField in values) && <Failed failure={failure} />}
        <div class="dialog-feet row">
          <Button onClick={hide}>{keep}</Button>
          <button
            type="submit"
            class={isDestructive ? 'button destructive' : 'button primary'}
            disabled={isBusy || !isComplete}
          >
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface Secret {
  readonly title: string;
  /** The name of what has the secret. */
  readonly name: string;
  readonly noun: 'key' | 'token' | 'link' | 'secret';
  readonly secret: string;
  /** What the user does if the secret is lost. */
  readonly ifLost?: string;
}

/** Shows a complete new secret in a dialog. This is the only time, because the gateway does not show it again. */
export function showSecret(shown: Secret): void {
  const { title, name, noun, secret, ifLost = 'revoke it and create another' } = shown;
  showDialog(
    <Dialog title={title} isFirm>
      <div class="form stack">
        <p>
          <strong>{name}</strong>: copy the {noun} now and keep it in a safe place. It is shown only once. If you lose
          it, {ifLost}.
        </p>
        <div class="secret">
          <code>{secret}</code>
        </div>
        <div class="dialog-feet row">
          <Button onClick={hide}>Done</Button>
          <CopyButton text={secret} label={`Copy the ${noun}`} words={`Copy the ${noun}`} kind="primary" />
        </div>
      </div>
    </Dialog>,
  );
}
