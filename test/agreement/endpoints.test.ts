import { expect } from 'chai';
import { MEMBER_ROLE_NAMES } from '../../core/sign-in/member-roles';
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

  it('declare the roles of users that may ask them if the console serves them after the sign-in', () => {
    const ofSessions = routes.flatMap((route) =>
      route.listener === 'public' && route.auth === 'session' ? [route] : [],
    );
    expect(ofSessions.length).to.be.greaterThan(30);
    const wrong = ofSessions.filter(({ roles }) => {
      // Owners may ask for everything.
      return !roles.includes('owner') || !roles.every((role) => MEMBER_ROLE_NAMES.includes(role));
    });
    expect(
      wrong.map((route) => `${nameOf(route)}: say its \`roles\`, with core/sign-in/member-roles.ts`),
    ).to.deep.equal([]);
  });

  it('of changes leave nothing to viewers but their own session and password', () => {
    const open = routes.filter(
      (route) =>
        route.listener === 'public' &&
        route.auth === 'session' &&
        route.method !== 'GET' &&
        route.roles.includes('viewer'),
    );
    expect(open.map(nameOf)).to.have.members([
      'DELETE /console/api/session',
      'DELETE /console/api/sessions',
      'PUT /console/api/password',
    ]);
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
