import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure } from '../api';
import { announce } from '../parts/announce';
import { Dialog } from '../parts/dialog';
import { Failed } from '../parts/states';
import { toFailure } from '../resource';

interface Props {
  readonly title: string;
  /** On the button that does it. */
  readonly verb: string;
  readonly isDestructive?: boolean;
  /** On the button that does not. */
  readonly keep?: string;
  /** What screen readers are told when it is done. */
  readonly done: string;
  readonly act: () => Promise<unknown>;
  readonly onDone: () => void;
  readonly onClose: () => void;
  /** What is decided, and what is to be filled in; `errorOf` says what is wrong with a field. */
  readonly children: (errorOf: (field: string) => string | undefined) => ComponentChildren;
  /** Fields whose errors are shown beside them. */
  readonly fields?: readonly string[];
}

/** One decision: it says what will happen, does it, and shows in place why it could not. */
export function ActDialog(props: Props) {
  const { title, verb, isDestructive = false, keep = 'Cancel', done, act, onDone, onClose, fields = [] } = props;
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await act();
      announce(done);
      onDone();
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  const isOfField = fields.includes(failure?.more.param ?? '');
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {props.children((field) => (failure?.more.param === field ? failure.message : undefined))}
        {failure !== undefined && !isOfField && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            {keep}
          </button>
          <button type="submit" class={isDestructive ? 'button destructive' : 'button primary'} disabled={isBusy}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
