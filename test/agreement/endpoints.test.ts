import { expect } from 'chai';
import { nameOf, ownRoutes } from '../support/own-api';
import { filesUnder, textOf } from '../support/sources';

const MOVE = 'give each endpoint a file plugins/<name>/routes/<verb-noun>.ts, and list it in the index.ts beside it';

const IS_IN_ROUTES = /^plugins\/[^/]+\/routes\//;
const VERB_NOUN = /\/[a-z]+(-[a-z]+)+\.ts$/;

interface RouteFunction {
  readonly name: string;
  readonly returns: string;
}

/** Lists the exported functions that make routes, by their name or their return type. */
function routeFunctionsOf(text: string): readonly RouteFunction[] {
  const functions = [...text.matchAll(/^export (?:async )?function (\w+)\((?:(?!\n\})[\s\S])*?\): ([^{]+) \{$/gm)].map(
    ([, name = '', returns = '']) => ({ name, returns }),
  );
  const constants = [...text.matchAll(/^export const (\w+Route)\b/gm)].map(([, name = '']) => ({ name, returns: '' }));
  return [...functions, ...constants].filter(
    ({ name, returns }) => name.endsWith('Route') || /\b(Account)?Route\b/.test(returns),
  );
}

/** Counts the route objects in a source text: each has a method, a path and a handler. */
function countRoutes(text: string): number {
  const isOfRoutes = /\bpath\b[:,]/.test(text) && /\bhandle\b[:,(]/.test(text);
  return isOfRoutes ? [...text.matchAll(/\bmethod: ['"`]/g)].length : 0;
}

/** Returns why a file of a plugin breaks the convention, with advice; undefined if it keeps it. */
function objection(path: string, text: string): string | undefined {
  const count = countRoutes(text);
  if (!IS_IN_ROUTES.test(path) || path.endsWith('/routes/index.ts'))
    return count === 0 ? undefined : `holds an endpoint: ${MOVE}`;
  const functions = routeFunctionsOf(text);
  const [only] = functions;
  if (functions.length > 1 || count > 1) return `holds several endpoints: ${MOVE}`;
  if (only === undefined) return count === 0 ? undefined : 'holds an endpoint: export one function xRoute(…): Route';
  if (!only.name.endsWith('Route')) return `exports ${only.name}, which makes a route: call it ${only.name}Route`;
  if (!/^(Account)?Route$/.test(only.returns)) return `${only.name} returns ${only.returns}: let it return one Route`;
  return VERB_NOUN.test(path) ? undefined : 'holds an endpoint: name it by verb and noun, such as list-keys.ts';
}

const files = filesUnder('plugins').filter((path) => path.endsWith('.ts'));
const routes = ownRoutes();

describe('endpoints of plugins', () => {
  it('are found in more than a few files', () => {
    const holding = files.filter((path) => countRoutes(textOf(path)) > 0);
    expect(holding.length).to.be.greaterThan(80);
  });

  it('have a file each below plugins/<name>/routes', () => {
    const wrong = files.flatMap((path) => {
      const why = objection(path, textOf(path));
      return why === undefined ? [] : [`${path} ${why}`];
    });
    expect(wrong).to.deep.equal([]);
  });

  it('state their purpose in one line', () => {
    expect(routes.filter(({ summary }) => summary === '').map(nameOf)).to.deep.equal([]);
  });

  it('of the admin listener declare the role that they need', () => {
    const open = routes.filter(
      (route) => route.listener === 'admin' && route.auth === undefined && route.role === undefined,
    );
    expect(open.map((route) => `${nameOf(route)}: say its \`role\`, one of core/operators/roles.ts`)).to.deep.equal([]);
  });

  it('declare their answers, with a shape for every body', () => {
    const silent = routes.filter(({ method, answers, errors = [] }) => {
      // An endpoint for every method passes an answer on, or refuses.
      if (method === '*') return Object.keys(answers).length === 0 && errors.length === 0;
      const said = Object.entries(answers);
      const isWithoutShape = said.some(
        ([status, { schema, orAs }]) => /^20[0-3]$/.test(status) && schema === undefined && orAs === undefined,
      );
      return said.length === 0 || isWithoutShape;
    });
    expect(silent.map((route) => `${nameOf(route)}: say it in \`answers\`, with core/http/shape.ts`)).to.deep.equal([]);
  });

  describe("the check of an endpoint's file", () => {
    const route = `  return {\n    listener: 'admin',\n    method: 'GET',\n    path: '/x',\n    handle: async () => {},\n  };\n`;
    const one = (name: string, returns = 'Route') =>
      `export function ${name}(\n  gateway: { catalog: unknown },\n): ${returns} {\n${route}}\n`;

    for (const [what, path, text, isFine] of [
      ['one endpoint in its file', 'plugins/x/routes/list-keys.ts', one('listKeysRoute'), true],
      ['one that the console shows too', 'plugins/x/routes/list-keys.ts', one('listKeysRoute', 'AccountRoute'), true],
      ['a helper beside them', 'plugins/x/routes/key.ts', 'export function showKey(key: Key): object {\n}\n', true],
      ['a request to another server', 'plugins/x/ask.ts', `ask({ method: 'GET', path: '/x' });\n`, true],
      ['a list of them', 'plugins/x/routes/index.ts', 'export function xRoutes(): readonly Route[] {\n}\n', true],
      ['an endpoint in another file', 'plugins/x/keys.ts', one('listKeysRoute'), false],
      ['an endpoint in the list', 'plugins/x/routes/index.ts', one('listKeysRoute'), false],
      ['two functions', 'plugins/x/routes/list-keys.ts', one('listKeysRoute') + one('showKeyRoute'), false],
      ['two in one function', 'plugins/x/routes/list-keys.ts', one('listKeysRoute') + route, false],
      ['a function that returns several', 'plugins/x/routes/list-keys.ts', one('listKeysRoute', 'Route[]'), false],
      ['a function without the word', 'plugins/x/routes/list-keys.ts', one('listKeys'), false],
      ['a function that is not exported', 'plugins/x/routes/list-keys.ts', route, false],
      ['a name without a verb', 'plugins/x/routes/keys.ts', one('listKeysRoute'), false],
    ] as const) {
      it(`${isFine ? 'accepts' : 'rejects'} ${what}`, () =>
        expect(objection(path, text) === undefined).to.equal(isFine));
    }
  });
});
