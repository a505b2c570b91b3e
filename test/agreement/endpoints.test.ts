import { expect } from 'chai';
import { nameOf, ownRoutes } from '../support/own-api';

const routes = ownRoutes();

describe('endpoints of plugins', () => {
  it('are more than 80, which shows that the search for endpoints itself works', () => {
    expect(routes.length).to.be.greaterThan(80);
  });

  it('have a summary of one line that states their purpose', () => {
    expect(routes.filter(({ summary }) => summary === '').map(nameOf)).to.deep.equal([]);
  });

  it('declare the role that they need if they are on the admin listener', () => {
    const open = routes.filter(
      (route) => route.listener === 'admin' && route.auth === undefined && route.role === undefined,
    );
    expect(open.map((route) => `${nameOf(route)}: say its \`role\`, one of core/operators/roles.ts`)).to.deep.equal([]);
  });

  it('declare their answers, with a schema for every body', () => {
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
});
