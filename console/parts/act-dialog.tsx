import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure } from '../api';
import { toFailure } from '../resource';
import { announce } from './announce';
import { Dialog } from './dialog';
import { Failed } from './states';

interface Props<R> {
  readonly title: string;
  /** On the button that does it. */
  readonly verb: string;
  readonly isDestructive?: boolean;
  /** What is filled in is complete. */
  readonly isComplete?: boolean;
  /** On the button that does not. */
  readonly keep?: string;
  /** What screen readers are told when it is done. */
  readonly done?: string;
  readonly act: () => Promise<R>;
  readonly onDone: (result: R) => void;
  readonly onClose: () => void;
  /** What is decided, and what is to be filled in; `errorOf` says what is wrong with a field. */
  readonly children: (errorOf: (field: string) => string | undefined) => ComponentChildren;
  /** Fields whose errors are shown beside them. */
  readonly fields?: readonly string[];
}

/** One decision: it says what will happen, does it, and shows in place why it could not. */
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
  // `allowedAddresses[2]` is an error of the field `allowedAddresses`.
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
