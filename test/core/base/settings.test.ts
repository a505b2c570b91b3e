import { expect } from 'chai';
import { compileCheck, DURATION, type Problem, parseDuration } from '../../../core/base/settings';

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: {
    name: { type: 'string' },
    attempts: { type: 'integer', minimum: 1, default: 4 },
    wait: { ...DURATION, default: '10s' },
    mode: { enum: ['fast', 'slow'], default: 'fast' },
    limits: {
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: { bytes: { type: 'integer', default: 9 } },
    },
    'a/b~c': { type: 'array', items: { type: 'boolean' } },
  },
} as const;

const check = compileCheck<unknown>(SCHEMA);

function problemsOf(value: unknown): readonly Problem[] {
  const checked = check(value);
  return 'problems' in checked ? checked.problems : [];
}

describe('the check of settings', () => {
  it('fills in defaults, even nested ones, and does not change the given value', () => {
    const given = { name: 'n' };
    expect(check(given)).to.deep.equal({
      value: { name: 'n', attempts: 4, wait: '10s', mode: 'fast', limits: { bytes: 9 } },
    });
    expect(given).to.deep.equal({ name: 'n' });
  });

  it('never converts a value to another type', () => {
    expect(problemsOf({ name: 'n', attempts: '4' })[0]?.message).to.equal('expected integer, not a string');
    expect(problemsOf({ name: 5 })[0]?.message).to.equal('expected string, not number 5');
    expect(problemsOf({ name: null })[0]?.message).to.equal('expected string, not null');
    expect(problemsOf({ name: [] })[0]?.message).to.equal('expected string, not an array');
    expect(problemsOf({ name: {} })[0]?.message).to.equal('expected string, not an object');
  });

  it('never shows a value in an error, because a misplaced value could be a secret', () => {
    for (const { message } of problemsOf({ name: 'n', attempts: 'hush', limits: 'hush', wait: 'hush', mode: 'hush' }))
      expect(message).not.to.contain('hush');
  });

  it('reports an unknown setting with its path and the known settings', () => {
    const [problem] = problemsOf({ name: 'n', limits: { bites: 1 } });
    expect(problem).to.deep.equal({
      path: ['limits', 'bites'],
      message: 'unknown setting "bites"',
      unknown: 'bites',
      known: ['bytes'],
    });
  });

  it('reports all problems of the settings at once', () => {
    const found = problemsOf({ attempts: 0, wait: 'soon', mode: 'medium', extra: 1 });
    expect(found.map(({ message }) => message)).to.have.members([
      '"name" is missing',
      'expected at least 1',
      'expected a duration such as 250ms, 10s, 5m or 1h',
      'expected one of fast, slow',
      'unknown setting "extra"',
    ]);
  });

  it('accepts durations in milliseconds, seconds, minutes and hours', () => {
    expect([parseDuration('250ms'), parseDuration('10s'), parseDuration('5m'), parseDuration('1h')]).to.deep.equal([
      250, 10_000, 300_000, 3_600_000,
    ]);
    expect(() => parseDuration('soon')).to.throw(RangeError);
  });

  it('rejects a duration longer than a timer can wait', () => {
    expect(parseDuration('9999h')).to.equal(2 ** 31 - 1);
  });
});
