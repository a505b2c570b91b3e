import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useAct } from './dialog';
import { Fields, type FormPart, type Values } from './field';
import { Mark } from './icon';
import { Failed } from './states';

/** Shows the sign-in form instead of the requested page. After the sign-in, the user sees that page. */
export function SignInFrame({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);
  return (
    <main class="alone">
      <div class="sign-in stack">
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
  readonly fields: readonly FormPart[];
  readonly signIn: (values: Values) => Promise<void>;
  /** The label of the button. Default: `Sign in`. */
  readonly verb?: string;
  /** The gateway's error code for wrong credentials, and the text that the form shows for it. */
  readonly wrong: { readonly code: string; readonly text: string };
  /** The gateway's error code for too many attempts. */
  readonly slowedCode: string;
}

export function SignInForm({ fields, signIn, verb = 'Sign in', wrong, slowedCode }: FormProps) {
  const [values, setValues] = useState<Values>({});
  const { failure, isBusy, run } = useAct(() => signIn(values));
  const seconds = failure?.more.retryAfterSeconds;
  return (
    <form class="form stack" onSubmit={run}>
      <Fields parts={fields} values={values} onChange={setValues} />
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
        {isBusy ? 'Signing in …' : verb}
      </button>
    </form>
  );
}
