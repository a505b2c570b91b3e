import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure } from '../api';
import { toFailure } from '../resource';
import { announce } from './announce';
import { Dialog } from './dialog';
import { Failed } from './states';

interface Props<R> {
  readonly title: string;
  /** The text of the button that acts. */
  readonly verb: string;
  readonly isDestructive?: boolean;
  /** Whether the form is complete. */
  readonly isComplete?: boolean;
  /** The text of the button that cancels. */
  readonly keep?: string;
  /** What screen readers announce after the act. */
  readonly done?: string;
  readonly act: () => Promise<R>;
  readonly onDone: (result: R) => void;
  readonly onClose: () => void;
  /** The text and fields of the dialog; `errorOf` returns the error of a field. */
  readonly children: (errorOf: (field: string) => string | undefined) => ComponentChildren;
  /** The fields that show their own errors. */
  readonly fields?: readonly string[];
}

/** A dialog for one decision: says what will happen, does it, and shows the error in place if it fails. */
export function ActDialog<R>(props: Props<R>) {
  const { title, verb, isDestructive = false, isComplete = true, keep = 'Cancel' } = props;
  const { done, act, onDone, onClose, fields = [] } = props;
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      const result = await act();
      if (done !== undefined) announce(done);
      onDone(result);
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  // An error of `allowedAddresses[2]` belongs to the field `allowedAddresses`.
  const wrongField = failure?.more.param?.replace(/\[.*$/, '') ?? '';
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {props.children((field) => (wrongField === field ? failure?.message : undefined))}
        {failure !== undefined && !fields.includes(wrongField) && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            {keep}
          </button>
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
