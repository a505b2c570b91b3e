import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { type Configuration, configurationReader } from '../../../core/configuration/configuration';
import { ConfigurationError } from '../../../core/configuration/yaml-file';
import { loadPlugins } from '../../../core/serving/load-plugins';
import { skippedStages } from '../../../plugins/rollouts/skipped';
import type { RolloutRow } from '../../../plugins/rollouts/store';
import { temporaryFolder } from '../../support/configuration-folder';
import type { Configured } from '../../support/gateway';
import { PROJECT, textOf } from '../../support/sources';

const read = configurationReader(loadPlugins(PROJECT, {}));

const UPSTREAM = {
  adapter: ['messages', 'chat'],
  credential: { env: 'HOME' },
  models: {
    'acme-large': {
      aliases: ['acme-newest'],
      context: 1_000,
      maxOutput: 100,
      price: { input: 1, output: 2 },
    },
  },
};

function configured(rollouts: unknown, change: (config: Configured) => void = () => undefined): Configuration {
  const config = parse(textOf('gateway.config.yml')) as Configured;
  const other = { 'acme-next': { ...UPSTREAM.models['acme-large'], aliases: [] } };
  config['serviceEndpoints'] = {
    acme: { ...UPSTREAM, url: 'https://acme.example', models: { ...UPSTREAM.models, ...other } },
    beta: { ...UPSTREAM, url: 'https://beta.example' },
    other: { ...UPSTREAM, url: 'https://other.example', models: { lone: other['acme-next'] } },
  };
  if (rollouts !== undefined) config['rollouts'] = rollouts;
  change(config);
  const text = stringify(config, { aliasDuplicateObjects: false });
  return read(temporaryFolder({ 'gateway.config.yml': text }), { HOME: 'h' });
}

function problemsOf(rollouts: unknown, change?: (config: Configured) => void): readonly string[] {
  try {
    configured(rollouts, change);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    for (const { line, column } of error.problems) expect([line, column]).to.satisfy(([l, c]: number[]) => l && c);
    return error.problems.map(({ message }) => message);
  }
}

const STAGES = [
  { share: 1, hold: '10m' },
  { share: 100, hold: '1h' },
];
const ADD = { upstreams: { model: 'acme-large', add: ['beta'] } };
const NEXT = { version: { alias: 'acme-newest', model: 'acme-next' } };
const SETTINGS = { pipeline: { name: 'quality', settings: { failover: { maxAttempts: 2 } } } };

describe('the section `rollouts` of gateway.config.yml', () => {
  it('has default values for members that the file omits', () => {
    const { rollouts } = configured({ next: { change: ADD, stages: STAGES, guards: { errorRate: { minCalls: 50 } } } });
    expect(rollouts).to.have.length(1);
    expect(rollouts[0]).to.deep.include({
      name: 'next',
      change: { kind: 'upstreams', model: 'acme-large', add: ['beta'], drop: [], first: true },
      stickyBy: 'account',
      stages: [
        { share: 0.01, holdMs: 600_000 },
        { share: 1, holdMs: 3_600_000 },
      ],
      guards: [{ name: 'errorRate', above: 0.02, times: 1, minCalls: 50 }],
      shadow: 0,
      onAbort: 'rollback',
    });
  });

  it('warns that guards need calls of ten accounts, unless each call is drawn separately', () => {
    const guards = { errorRate: { minCalls: 50 } };
    const warned = (more: object) => {
      const { warnings } = configured({ next: { change: ADD, stages: STAGES, guards, ...more } });
      return warnings.map(({ message }) => message).filter((each) => each.startsWith('rollouts.next'));
    };
    expect(warned({})).to.deep.equal([
      'rollouts.next.stages[0].share: guards need calls of ten accounts, and stage 1 has them only of 1000 accounts in all on: with fewer, use `stickyBy: request`',
    ]);
    expect(warned({ stickyBy: 'request' })).to.deep.equal([]);
    expect(warned({ guards: {} })).to.deep.equal([]);
  });

  it('gives a rollout another definition if its change or its callers differ, but not for other stages and guards', () => {
    const definition = (more: object) =>
      configured({ next: { change: ADD, stages: STAGES, ...more } }).rollouts[0]?.definition;
    const first = definition({});
    expect(definition({ guards: { errorRate: { minCalls: 50 } }, shadow: 5, onAbort: 'hold' })).to.equal(first);
    expect(definition({ stickyBy: 'key' })).not.to.equal(first);
    expect(definition({ stages: STAGES.slice(1) })).to.equal(first);
    expect(definition({ change: NEXT })).not.to.equal(first);
  });

  const refused: readonly { what: string; rollouts: unknown; says: readonly RegExp[] }[] = [
    {
      what: 'an upstream and a model that are not there',
      rollouts: {
        next: { change: { upstreams: { model: 'acme-lrge', add: ['betta'] } }, stages: STAGES },
        other: { change: { version: { alias: 'acme-newest', model: 'acme-nxt' } }, stages: STAGES },
      },
      says: [
        /^rollouts\.next\.change\.upstreams\.model: model "acme-lrge" does not exist; did you mean "acme-large"/,
        /^rollouts\.next\.change\.upstreams\.add\[0\]: upstream "betta" does not exist; did you mean "beta"/,
        /^rollouts\.other\.change\.version\.model: model "acme-nxt" does not exist; did you mean "acme-next"/,
      ],
    },
    {
      what: 'an upstream that does not serve the model',
      rollouts: { next: { change: { upstreams: { model: 'acme-large', add: ['other'] } }, stages: STAGES } },
      says: [/upstreams\.add\[0\]: "other" does not serve "acme-large"/],
    },
    {
      what: 'shares that fall',
      rollouts: { next: { change: ADD, stages: [...STAGES, { share: 50, hold: '1m' }] } },
      says: [/^rollouts\.next\.stages\[2\]\.share: falls from 100 to 50/],
    },
    {
      what: 'no way back: nobody else serves the model',
      rollouts: { next: { change: { upstreams: { model: 'acme-large', add: ['beta', 'acme'] } }, stages: STAGES } },
      says: [/upstreams\.add: the change cannot be rolled back: no other upstream serves "acme-large"/],
    },
    {
      what: 'no way back: everybody is in at once',
      rollouts: {
        next: { change: ADD, stages: STAGES.slice(1), guards: { errorRate: { minCalls: 20 } } },
      },
      says: [/^rollouts\.next\.stages\[0\]\.share: the first stage has all callers/],
    },
    {
      what: 'nobody left, and nothing changed',
      rollouts: {
        one: { change: { upstreams: { model: 'acme-large', drop: ['beta', 'acme'] } }, stages: STAGES },
        two: { change: { version: { alias: 'lone', model: 'lone' } }, stages: STAGES },
      },
      says: [
        /one\.change\.upstreams\.drop: no upstream would be left/,
        /two\.change\.version\.model: the rollout changes nothing/,
      ],
    },
    {
      what: 'two rollouts on one model',
      rollouts: { one: { change: ADD, stages: STAGES }, two: { change: NEXT, stages: STAGES } },
      says: [/^rollouts\.two\.change: this rollout and "one" would change the same calls/],
    },
    {
      what: 'a rollout of a pipeline beside one of a model',
      rollouts: { one: { change: ADD, stages: STAGES }, two: { change: SETTINGS, stages: STAGES } },
      says: [/^rollouts\.two\.change: this rollout and "one" would change the same calls/],
    },
    {
      what: 'a guard without minCalls',
      rollouts: { next: { change: ADD, stages: STAGES, guards: { costRatio: { times: 1.1 } } } },
      says: [/^rollouts\.next\.guards\.costRatio: "minCalls" is missing/],
    },
    {
      what: 'a guard that does not exist, and a line of errors',
      rollouts: {
        next: {
          change: ADD,
          stages: STAGES,
          guards: { errorRte: { minCalls: 20 }, errorRate: { times: 2, minCalls: 20 } },
        },
      },
      says: [/guards\.errorRte: .*errorRate/, /guards\.errorRate\.times: `times` applies only to/],
    },
    {
      what: 'settings that a policy would refuse, of policies that are not there, or that run too early',
      rollouts: {
        next: {
          change: {
            pipeline: {
              name: 'quality',
              settings: {
                failover: { maxAttempts: 0 },
                'fail-over': { maxAttempts: 1 },
                'key-auth': { x: 1 },
                'strategy-routing': { upstreams: ['betta'] },
              },
            },
          },
          shadow: 5,
          stages: STAGES,
        },
        more: { change: { pipeline: { name: 'qality', settings: { failover: { maxAttempts: 1 } } } }, stages: STAGES },
      },
      says: [
        /settings\.failover\.maxAttempts: expected at least 1/,
        /settings\.fail-over: pipeline "quality" has no policy "fail-over"; did you mean "failover"/,
        /settings\.key-auth: "key-auth" runs before the caller is identified/,
        /settings\.strategy-routing\.upstreams\[0\]: upstream "betta" does not exist/,
        /^rollouts\.next\.shadow: settings of a pipeline cannot be mirrored/,
        /^rollouts\.more\.change\.pipeline\.name: pipeline "qality" does not exist; did you mean "quality"/,
      ],
    },
    {
      what: 'somebody who is in and out',
      rollouts: {
        next: {
          change: ADD,
          stages: STAGES,
          include: ['019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d'],
          exclude: ['019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d', 'somebody'],
        },
      },
      says: [/^rollouts\.next\.exclude\[1\]: expected the id of an account or of a key/],
    },
    {
      what: 'two changes at once',
      rollouts: { next: { change: { ...ADD, ...NEXT }, stages: STAGES } },
      says: [/change/],
    },
  ];
  for (const { what, rollouts, says } of refused) {
    it(`refuses ${what}, and names the line and the reason`, () => {
      const problems = problemsOf(rollouts);
      expect(problems, problems.join('\n')).to.have.length(says.length);
      for (const [index, pattern] of says.entries()) expect(problems[index]).to.match(pattern);
    });
  }

  it('is checked as far as possible while the configuration of upstreams has errors', () => {
    const rollouts = {
      next: { change: { upstreams: { model: 'acme-large', add: ['other'] } }, stages: STAGES.toReversed() },
    };
    const found = problemsOf(rollouts, (config) => {
      config['serviceEndpoints'].acme.teir = 'official';
    });
    expect(found.map((each) => each.replace(/: .*/, ''))).to.have.members([
      'serviceEndpoints.acme.teir',
      'rollouts.next.stages[1].share',
    ]);
  });

  it('accepts two rollouts if no call can be in both', () => {
    const other = { ...NEXT, version: { alias: 'lone', model: 'acme-next' } };
    expect(problemsOf({ one: { change: ADD, stages: STAGES }, two: { change: other, stages: STAGES } })).to.deep.equal(
      [],
    );
    const direct = { pipeline: { name: 'direct', settings: { failover: { maxAttempts: 2 } } } };
    expect(problemsOf({ one: { change: ADD, stages: STAGES }, two: { change: direct, stages: STAGES } })).to.deep.equal(
      [],
    );
  });

  describe('when a rollout is removed from the file', () => {
    const objections = (row: Partial<RolloutRow> | undefined, before: object, next: object | undefined) => {
      const old = configured(before);
      const [rollout] = old.rollouts;
      const { definition, name } = rollout ?? {};
      const own = row && ({ definition, stage: 1, status: 'running', shares: [0.01, 1], ...row } as RolloutRow);
      return skippedStages(old, configured(next), (each) => (each === name ? own : undefined));
    };
    const next = { next: { change: ADD, stages: STAGES } };

    it('warns that the change would reach all callers at once', () => {
      expect(objections({}, next, undefined)).to.deep.equal([
        'rollout "next" is at stage 1 of 2, with 1 % in it: this gives its change to 100 % at once',
      ]);
      expect(objections({ status: 'rolled-back' }, next, undefined)).to.have.length(1);
      expect(objections(undefined, next, undefined)).to.have.length(1);
    });

    it('accepts the removal of a completed rollout, or of a rollout together with its change', () => {
      expect(objections({ status: 'completed', stage: 2 }, next, undefined)).to.deep.equal([]);
      expect(objections({}, { next: { change: NEXT, stages: STAGES } }, undefined)).to.deep.equal([]);
      expect(objections({}, { next: { change: SETTINGS, stages: STAGES } }, undefined)).to.deep.equal([]);
    });

    it('accepts other stages unless they give the change to more callers than the current stage', () => {
      const staged = (...shares: number[]) => {
        const stages = shares.map((share) => ({ share, hold: '1m' }));
        return { next: { change: ADD, stages } };
      };
      expect(objections({}, next, staged(1))).to.deep.equal([]);
      expect(objections({}, next, staged(50))[0]).to.contain('this gives its change to 50 % at once');
      expect(objections({}, next, next)).to.deep.equal([]);
      expect(objections({ stage: 2 }, next, staged(1, 20, 100))).to.deep.equal([]);
      expect(objections({ status: 'rolled-back' }, next, staged(50))).to.deep.equal([]);
    });

    it('accepts another name or a larger change if it reaches no more callers than before', () => {
      const named = (share: number, change: object = ADD) => ({
        other: { change, stages: [{ share, hold: '1m' }] },
      });
      expect(objections({}, next, named(1))).to.deep.equal([]);
      expect(objections({}, next, named(50))[0]).to.contain('this gives its change to 50 % at once');
      const another = { upstreams: { model: 'acme-large', add: ['acme'] } };
      expect(objections({}, next, named(1, another))[0]).to.contain('to 100 % at once');
    });

    it('continues a rollout that is added again at its old stage, and reports this', () => {
      const back = (row: Partial<RolloutRow>) => {
        const configuration = configured(next);
        const { definition } = configuration.rollouts[0] ?? {};
        const known = { definition, stage: 2, shares: [0.01, 1], ...row } as RolloutRow;
        return skippedStages(configured(undefined), configuration, () => known);
      };
      expect(back({ status: 'completed' })[0]).to.equal(
        'rollout "next" already ran and is completed: it continues with 100 %, not with 1 %; rename it to start again',
      );
      expect(back({ status: 'running', stage: 1 })).to.deep.equal([]);
      expect(back({ status: 'rolled-back' })).to.deep.equal([]);
    });
  });
});
