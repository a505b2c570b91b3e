import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Failure } from '../api';
import { toFailure } from '../resource';
import { Mark } from './icon';
import { Failed } from './states';

/** Shows the sign-in instead of the requested page, which is shown afterwards. */
export function SignInFrame({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);
  return (
    <main class="alone">
      <div class="sign-in">
        <div class="sign-in-head">
          <Mark />
          <h1>{title}</h1>
        </div>
        {children}
      </div>
    </main>
  );
}

interface FormProps {
  readonly signIn: () => Promise<void>;
  /** The error code of wrong credentials, and the text for it. */
  readonly wrong: { readonly code: string; readonly text: string };
  /** The error code of too many attempts. */
  readonly slowedCode: string;
  readonly children: ComponentChildren;
}

export function SignInForm({ signIn, wrong, slowedCode, children }: FormProps) {
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await signIn();
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  const seconds = failure?.more.retryAfterSeconds;
  return (
    <form class="form" onSubmit={submit}>
      {children}
      {failure?.code === wrong.code ? (
        <p class="note bad" role="alert">
          {wrong.text}
        </p>
      ) : failure?.code === slowedCode ? (
        <p class="note warn" role="alert">
          Too many attempts. {seconds === undefined ? 'Try again later.' : `Try again in ${seconds} s.`}
        </p>
      ) : (
        failure !== undefined && <Failed failure={failure} />
      )}
      <button type="submit" class="button primary wide" disabled={isBusy}>
        {isBusy ? 'Signing in …' : 'Sign in'}
      </button>
    </form>
  );
}
