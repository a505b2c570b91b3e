import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Failure } from '../api';
import { toFailure } from '../resource';
import { place } from '../router';
import { announce } from './announce';
import { Button, CopyButton } from './button';
import { Fields, type FormPart, firstValuesOf, type Values } from './field';
import { Icon } from './icon';
import { Failed } from './states';

const shown = signal<ComponentChildren>(null);

/** Opens a dialog over the page. It closes when the page changes. */
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
  /** Called for Escape, the cross, or a click outside. */
  readonly onClose?: () => void;
  /** `sheet` is a sheet at the side for one of many items; the default is a box in the middle for one decision. */
  readonly kind?: 'sheet';
  /** A firm dialog cannot be closed by accident: it has no cross and ignores Escape. */
  readonly isFirm?: boolean;
  readonly children: ComponentChildren;
}

/** The browser's own modal dialog, which keeps the focus inside and returns it afterwards. */
export function Dialog({ title, onClose = hide, kind, isFirm = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isLeft = useRef(false);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // The focus goes to the first field or button. The browser would choose the cross.
    element?.querySelector<HTMLElement>('input, .primary')?.focus();
    return () => {
      isLeft.current = true;
      element?.close();
    };
  }, []);
  /** Handles a second request to close, such as a phone's back gesture. The browser then closes the dialog whatever `cancel` does. */
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

/** Runs an act, such as that of a form. Keeps its failure, and whether it still runs. */
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
  /** The text of the button that acts. */
  readonly verb: string;
  readonly isDestructive?: boolean;
  /** Whether everything besides the fields is complete. */
  readonly isComplete?: boolean;
  /** The text of the button that cancels. */
  readonly keep?: string;
  /** What will happen. */
  readonly text?: ComponentChildren;
  readonly fields?: readonly FormPart[];
  readonly children?: ComponentChildren;
  /** Gets the values of the fields that are not empty. */
  readonly act: (values: Values) => Promise<R>;
  /** What screen readers announce after the act. */
  readonly done?: string;
  readonly onDone?: (result: R) => void;
}

/** Opens a dialog for one decision: says what will happen, does it, and shows the error in place if it fails. */
export function decide<R>(decision: Decision<R>): void {
  showDialog(<DecisionDialog {...decision} />);
}

export function DecisionDialog<R>(decision: Decision<R>) {
  const { title, verb, isDestructive = false, isComplete = true, keep = 'Cancel', text, fields = [] } = decision;
  const [values, setValues] = useState<Values>(() => firstValuesOf(fields));
  const { failure, isBusy, run } = useAct(async () => {
    const given = Object.entries(values).filter(([, value]) => value !== '');
    const result = await decision.act(Object.fromEntries(given));
    if (decision.done !== undefined) announce(decision.done);
    hide();
    decision.onDone?.(result);
  });
  // An error of `allowedAddresses[2]` belongs to the field `allowedAddresses`.
  const wrongField = failure?.more.param?.replace(/\[.*$/, '') ?? '';
  return (
    <Dialog title={title}>
      <form class="form stack" onSubmit={run}>
        {text}
        <Fields
          parts={fields}
          values={values}
          onChange={setValues}
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
  /** The name of the key or token. */
  readonly name: string;
  readonly noun: 'key' | 'token';
  readonly secret: string;
}

/** Shows a whole secret, once: nothing can show it again. */
export function showSecret({ title, name, noun, secret }: Secret): void {
  showDialog(
    <Dialog title={title} isFirm>
      <div class="form stack">
        <p>
          Copy the {noun} <strong>{name}</strong> now and keep it in a safe place. It is shown only once. If you lose
          it, revoke it and create another.
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
