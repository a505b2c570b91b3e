import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Failure, refetch, withQuery } from '../api';
import { Button } from '../parts/button';
import { SignInForm, SignInFrame } from '../parts/sign-in';
import { Failed } from '../parts/states';
import { toFailure, useResource } from '../resource';
import { hrefOf, place, takeFragment } from '../router';
import { keepSession } from '../session';
import type { Session, SignInMethods } from '../shapes';

/** The texts that explain a failed sign-in with the identity provider, by the reason in the address. */
const OIDC_ERRORS: Readonly<Record<string, string>> = {
  denied: 'The sign-in was refused or cancelled.',
  unknown: 'No user has this address. Ask the operator for an account.',
  bound: 'The user with this address is bound to another identity of the provider. Ask the operator to unbind it.',
  unverified: 'The identity provider has not verified this e-mail address.',
  expired: 'The sign-in took too long, or started in another browser. Try again.',
  slowed: 'Too many sign-ins from your network. Wait a minute, then try again.',
  failed: 'The identity provider does not answer. Try again later.',
};

const FIELDS = [
  { name: 'email', label: 'E-mail address', kind: 'email', isRequired: true },
  { name: 'password', label: 'Password', kind: 'password', isRequired: true },
] as const;

const WRONG = { code: 'SIGN_IN_FAILED', text: 'Wrong e-mail address or password.' };

export function SignInPage({ hasEnded }: { readonly hasEnded: boolean }) {
  const ways = useResource<SignInMethods>('sign-in');
  const [fragment] = useState(takeFragment);
  const [isLinkOver, setLinkOver] = useState(false);

  const token = fragment.get('token');
  const oidcError = fragment.get('error');

  return (
    <SignInFrame title="Sign in to Tollgate">
      {token !== null && !isLinkOver ? (
        <OneTimeLink token={token} onFailed={() => setLinkOver(true)} />
      ) : (
        <>
          {isLinkOver && (
            <p class="note warn" role="alert">
              This link was already used or has expired. Sign in below, or ask the operator for a new link.
            </p>
          )}
          {oidcError !== null && (
            <p class="note bad" role="alert">
              {OIDC_ERRORS[oidcError] ?? OIDC_ERRORS['failed']}
            </p>
          )}
          {hasEnded && <p class="note">Your session has ended. Sign in to return to this page.</p>}
          {ways.failure !== undefined && <Failed failure={ways.failure} onRetry={refetch} />}
          {ways.data?.password && (
            <SignInForm
              fields={FIELDS}
              signIn={async (body) => keepSession(await ask<Session>('session', { method: 'POST', body }))}
              wrong={WRONG}
              slowedCode="SIGN_IN_SLOWED"
            />
          )}
          {ways.data?.password && ways.data.oidc && <p class="or faint small">or</p>}
          {ways.data?.oidc && <OidcButton name={ways.data.oidc.name} startUrl={ways.data.oidc.startUrl} />}
        </>
      )}
    </SignInFrame>
  );
}

function OneTimeLink({ token, onFailed }: { readonly token: string; readonly onFailed: () => void }) {
  const [failure, setFailure] = useState<Failure>();
  const hasBegun = useRef(false);
  const signIn = async () => {
    setFailure(undefined);
    try {
      keepSession(await ask<Session>('session/link', { method: 'POST', body: { token } }));
    } catch (error) {
      const why = toFailure(error);
      if (why.code === 'SIGN_IN_FAILED') onFailed();
      else setFailure(why);
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once, because a link works once
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

function OidcButton({ name, startUrl }: { readonly name: string; readonly startUrl: string }) {
  const start = () => {
    const { path, query } = place.value;
    const isHere = path === '/sign-in';
    const returnTo = isHere ? hrefOf('/') : hrefOf(`${path}${query.size === 0 ? '' : `?${query}`}`);
    window.location.assign(withQuery(startUrl, { returnTo }));
  };
  return (
    <Button look="wide" onClick={start}>
      Continue with {name}
    </Button>
  );
}
