import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Failure, withQuery } from '../api';
import { Field } from '../parts/field';
import { Mark } from '../parts/icon';
import { Failed } from '../parts/states';
import { toFailure, useResource } from '../resource';
import { go, hrefOf, place } from '../router';
import { keepSession } from '../session';
import type { Session, SignInWays } from '../shapes';

/** What the way through the identity provider may come back with. */
const OIDC_ERRORS: Readonly<Record<string, string>> = {
  denied: 'The sign-in was refused or broken off.',
  unknown: 'Nobody here signs in with this address. Ask the operator for an account.',
  bound: 'The user with this address signs in with another identity of the provider. Ask the operator to unbind it.',
  unverified: 'The identity provider does not vouch for this e-mail address.',
  expired: 'The sign-in took too long, or was begun in another browser. Try again.',
  failed: 'The identity provider could not be asked. Try again later.',
};

/** Stands in place of whatever page was asked for, which shows once somebody is signed in. */
export function SignInPage({ hasEnded }: { readonly hasEnded: boolean }) {
  const ways = useResource<SignInWays>('sign-in');
  const [fragment] = useState(takeFragment);
  const [isLinkOver, setLinkOver] = useState(false);

  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);
  const token = fragment.get('token');
  const oidcError = fragment.get('error');

  return (
    <main class="alone">
      <div class="sign-in">
        <div class="sign-in-head">
          <Mark />
          <h1>Sign in to Tollgate</h1>
        </div>
        {token !== null && !isLinkOver ? (
          <OneTimeLink token={token} onFailed={() => setLinkOver(true)} />
        ) : (
          <>
            {isLinkOver && (
              <p class="note warn" role="alert">
                This link was used already, or is too old. Sign in below, or have a new link printed.
              </p>
            )}
            {oidcError !== null && (
              <p class="note bad" role="alert">
                {OIDC_ERRORS[oidcError] ?? OIDC_ERRORS['failed']}
              </p>
            )}
            {hasEnded && <p class="note">Your session has ended. Sign in, and you are back where you were.</p>}
            {ways.failure !== undefined && <Failed failure={ways.failure} onRetry={ways.reload} />}
            {ways.data?.password && <PasswordForm />}
            {ways.data?.password && ways.data.oidc && <p class="or">or</p>}
            {ways.data?.oidc && <OidcButton name={ways.data.oidc.name} startUrl={ways.data.oidc.startUrl} />}
          </>
        )}
      </div>
    </main>
  );
}

/** Reads what stands behind `#` and takes it out of the address, so that it stays in no history. */
function takeFragment(): URLSearchParams {
  const fragment = new URLSearchParams(window.location.hash.slice(1));
  if (fragment.has('token') || fragment.has('error')) {
    window.history.replaceState(null, '', window.location.pathname + window.location.search);
  }
  return fragment;
}

function OneTimeLink({ token, onFailed }: { readonly token: string; readonly onFailed: () => void }) {
  const [failure, setFailure] = useState<Failure>();
  const hasBegun = useRef(false);
  const signIn = async () => {
    setFailure(undefined);
    try {
      keepSession(await ask<Session>('session/link', { method: 'POST', body: { token } }));
      if (place.value.path === '/sign-in') go('/', { replace: true });
    } catch (error) {
      const why = toFailure(error);
      if (why.code === 'SIGN_IN_FAILED') onFailed();
      else setFailure(why);
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, for the link is used up by it
  useEffect(() => {
    if (!hasBegun.current) void signIn();
    hasBegun.current = true;
  }, []);
  return failure === undefined ? (
    <p class="quiet" role="status">
      Signing you in …
    </p>
  ) : (
    <Failed failure={failure} onRetry={signIn} />
  );
}

function PasswordForm() {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);

  const signIn = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      keepSession(await ask<Session>('session', { method: 'POST', body: { email, password } }));
      if (place.value.path === '/sign-in') go('/', { replace: true });
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={signIn}>
      <Field label="E-mail address">
        {(control) => (
          <input
            {...control}
            type="email"
            autocomplete="username"
            required
            value={email}
            onInput={(event) => setEmail(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Password">
        {(control) => (
          <input
            {...control}
            type="password"
            autocomplete="current-password"
            required
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        )}
      </Field>
      {failure !== undefined && <SignInFailure failure={failure} />}
      <button type="submit" class="button primary wide" disabled={isBusy}>
        {isBusy ? 'Signing in …' : 'Sign in'}
      </button>
    </form>
  );
}

function SignInFailure({ failure }: { readonly failure: Failure }) {
  if (failure.code === 'SIGN_IN_FAILED') {
    return (
      <p class="note bad" role="alert">
        Address and password do not belong together.
      </p>
    );
  }
  if (failure.code === 'SIGN_IN_SLOWED') {
    const seconds = failure.more.retryAfterSeconds;
    return (
      <p class="note warn" role="alert">
        Too many attempts. {seconds === undefined ? 'Try again later.' : `Try again in ${seconds} s.`}
      </p>
    );
  }
  return <Failed failure={failure} />;
}

function OidcButton({ name, startUrl }: { readonly name: string; readonly startUrl: string }) {
  const start = () => {
    const { path, query } = place.value;
    const isHere = path === '/sign-in';
    const returnTo = isHere ? hrefOf('/') : hrefOf(`${path}${query.size === 0 ? '' : `?${query}`}`);
    window.location.assign(withQuery(startUrl, { returnTo }));
  };
  return (
    <button type="button" class="button wide" onClick={start}>
      Continue with {name}
    </button>
  );
}
