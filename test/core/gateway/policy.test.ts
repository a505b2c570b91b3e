import { expect } from 'chai';
import { definePolicy } from '../../../core/gateway/policy';
import { compileCheck } from '../../../core/settings';
import { sampleGateway } from '../../support/exchange';

const schema = { type: 'object', properties: {} } as const;

describe('definePolicy', () => {
  it('closes the schema: an unknown setting is refused', () => {
    const policy = definePolicy({
      contract: 'policy/1',
      name: 'p',
      summary: '',
      schema,
      prepare: () => async () => {},
      needs: [],
      provides: [],
    });
    const check = compileCheck<unknown>(policy.schema);
    expect(check({})).to.deep.equal({ value: {} });
    expect(check({ loud: true })).to.have.property('problems');
  });

  it('passes the checked settings to `prepare`', () => {
    let given: unknown;
    const policy = definePolicy({
      contract: 'policy/1',
      name: 'p',
      summary: '',
      schema: { type: 'object', properties: { attempts: { type: 'integer', default: 4 } } },
      needs: [],
      provides: [],
      prepare: (settings) => {
        const attempts: number = settings.attempts;
        given = attempts;
        return async () => {};
      },
    });
    policy.prepare({ attempts: 7 }, sampleGateway());
    expect(given).to.equal(7);
  });

  // The compiler is the test here. Each declaration below is an error, and one without an error makes `npm run check` fail.
  it('makes the compiler refuse a step that differs from its declaration', () => {
    const key = { accountId: 'a', keyId: 'k', settings: { rev: 0, name: 'n', allowedModels: undefined } };

    definePolicy({
      contract: 'policy/1',
      name: 'uses-what-it-needs',
      summary: '',
      schema,
      needs: ['key'],
      provides: [],
      prepare: () => async (call) => void call.key.accountId.length,
    });

    definePolicy({
      contract: 'policy/1',
      name: 'uses-what-it-does-not-need',
      summary: '',
      schema,
      needs: [],
      provides: [],
      // @ts-expect-error `needs` does not list `key`
      prepare: () => async (call) => void call.key.accountId.length,
    });

    definePolicy({
      contract: 'policy/1',
      name: 'returns-what-it-provides',
      summary: '',
      schema,
      needs: [],
      provides: ['key'],
      prepare: () => async () => ({ key }),
    });

    definePolicy({
      contract: 'policy/1',
      name: 'returns-nothing',
      summary: '',
      schema,
      needs: [],
      provides: ['key'],
      // @ts-expect-error the step declares `key` and does not return it
      prepare: () => async () => ({}),
    });

    definePolicy({
      contract: 'policy/1',
      name: 'returns-the-wrong-thing',
      summary: '',
      schema,
      needs: [],
      provides: ['key'],
      // @ts-expect-error a key is not a string
      prepare: () => async () => ({ key: 'sk-svc' }),
    });

    definePolicy({
      contract: 'policy/1',
      name: 'needs-what-nobody-has',
      summary: '',
      schema,
      // @ts-expect-error no field of a call has this name
      needs: ['luck'],
      provides: [],
      prepare: () => async () => {},
    });

    definePolicy({
      contract: 'policy/1',
      name: 'takes-a-setting-for-what-it-is-not',
      summary: '',
      schema: { type: 'object', properties: { attempts: { type: 'integer' } } },
      needs: [],
      provides: [],
      // @ts-expect-error `attempts` is a number
      prepare: (settings) => async () => void settings.attempts.length,
    });

    definePolicy({
      contract: 'policy/1',
      name: 'writes-a-field-of-the-call',
      summary: '',
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
