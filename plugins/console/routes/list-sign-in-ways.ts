import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object, orNull, shape } from '../../../core/http/shape';

const WAYS = object({ password: shape.yes, oidc: orNull(object({ name: shape.text, startUrl: shape.text })) });

export interface SignInWays {
  readonly passwordSignIn: boolean;
  readonly provider: { readonly name: string } | undefined;
}

export function listSignInWaysRoute({ passwordSignIn, provider }: SignInWays): Route {
  const startUrl = '/console/api/oidc/start';
  return {
    listener: 'public',
    auth: 'page',
    method: 'GET',
    path: '/console/api/sign-in',
    summary: 'The available ways to sign in.',
    answers: { 200: { description: 'The ways.', schema: WAYS } },
    handle: async (_visit, _request, response) => {
      sendJson(response, 200, {
        password: passwordSignIn,
        oidc: provider === undefined ? null : { name: provider.name, startUrl },
      });
    },
  };
}
