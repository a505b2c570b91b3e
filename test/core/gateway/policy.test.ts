import { expect } from 'chai';
import { compileCheck } from '../../../core/base/settings';
import { definePolicy } from '../../../core/gateway/policy';
import { sampleGateway } from '../../support/exchange';

const base = { contract: 'policy/1', name: 'p', summary: '' } as const;
const schema = { type: 'object', properties: {} } as const;
const attempts = { type: 'object', properties: { attempts: { type: 'integer', default: 4 } } } as const;

describe('definePolicy', () => {
  it('makes the schema reject unknown members, and passes the checked settings to `prepare`', () => {
    let given: unknown;
    const policy = definePolicy({
      ...base,
      schema: attempts,
      needs: [],
      provides: [],
      prepare: (settings) => {
        given = settings.attempts;
        return async () => {};
      },
    });
    const check = compileCheck<unknown>(policy.schema);
    expect(check({})).to.deep.equal({ value: { attempts: 4 } });
    expect(check({ loud: true })).to.have.property('problems');
    policy.prepare({ attempts: 7 }, sampleGateway());
    expect(given).to.equal(7);
  });

  // The compiler is the test here. Each declaration below is an error, and one without an error makes `npm run check` fail.
  it('makes the TypeScript compiler reject a step that differs from its declaration', () => {
    const key = { accountId: 'a', keyId: 'k', settings: { rev: 0, name: 'n', allowedModels: undefined } };
    definePolicy({
      ...base,
      schema,
      needs: [],
      provides: [],
      // @ts-expect-error `needs` does not list `key`
      prepare: () => async (call) => void call.key.accountId.length,
    });
    // @ts-expect-error the step declares `key` and does not return it
    definePolicy({ ...base, schema, needs: [], provides: ['key'], prepare: () => async () => ({}) });
    // @ts-expect-error a key is not a string
    definePolicy({ ...base, schema, needs: [], provides: ['key'], prepare: () => async () => ({ key: 'sk-svc' }) });
    // @ts-expect-error no field of a call has this name
    definePolicy({ ...base, schema, needs: ['luck'], provides: [], prepare: () => async () => {} });
    definePolicy({
      ...base,
      schema: attempts,
      needs: [],
      provides: [],
      // @ts-expect-error `attempts` is a number
      prepare: (settings) => async () => void settings.attempts.length,
    });
    definePolicy({
      ...base,
      schema,
      needs: ['key'],
      provides: [],
      prepare: () => async (call) => {
        // @ts-expect-error a step returns fields and does not write them
        call.key = key;
      },
    });
  });
});
