import { expect } from 'chai';
import type { Narrowing } from '../../../core/calls/demanded';
import { buildCatalog, type Model } from '../../../core/catalog/catalog';
import { readDemands } from '../../../core/catalog/demands';
import type { ModelFacts } from '../../../core/catalog/facts';
import type { Gateway } from '../../../core/gateway/gateway';
import { UpstreamHealth } from '../../../core/health/health';
import { type JoiningCall, LiveRollouts, rolloutKeyOf } from '../../../core/rollouts/live-rollouts';
import type { Rollout } from '../../../core/rollouts/rollout';
import { openRoutes } from '../../../policies/strategy-routing/routes';
import { sampleModel, samplePrice, sampleUpstream } from '../../support/catalog-samples';
import { seeded } from '../../support/random';
import { sampleModelRequest } from '../../support/request-sample';

const UPSTREAMS = 50;
const DEMANDS = 1_000;

/** What one upstream has, as the test itself wrote it. */
interface Has {
  readonly region?: string[];
  readonly retention?: number;
  readonly trains?: boolean;
  readonly input: number;
  readonly output: number;
  readonly context: number;
}

/** What one call demands. */
interface Asks extends Partial<Omit<Has, 'trains'>> {
  readonly trains?: 'no';
}

/** Returns whether an upstream meets demands, by a plain reading of their documentation. */
function meets(has: Has, asks: Asks): boolean {
  const { region } = asks;
  if (region && has.region?.every((each) => region.includes(each)) !== true) return false;
  if (asks.retention !== undefined && !(has.retention !== undefined && has.retention <= asks.retention)) return false;
  if (asks.trains === 'no' && has.trains !== false) return false;
  if (asks.input !== undefined && has.input > asks.input) return false;
  if (asks.output !== undefined && has.output > asks.output) return false;
  return asks.context === undefined || has.context >= asks.context;
}

function textOf({ region, retention, trains, input, output, context }: Asks): string {
  const parts = {
    region: region?.join(),
    retention: retention === 0 ? 'none' : retention,
    trains,
    'max-input-price': input,
    'max-output-price': output,
    context,
  };
  const written = Object.entries(parts).filter(([, value]) => value !== undefined);
  return written.map(([name, value]) => `${name}=${value}`).join(';');
}

describe('The candidates of a call with demands', () => {
  const random = seeded(20_261_129);
  const one = <T>(choices: readonly T[]): T => random.pick(choices);
  const maybe = <T>(percent: number, value: () => T): T | undefined =>
    random.below(100) < percent ? value() : undefined;
  const regions = () => one([['eu'], ['us'], ['eu', 'us'], ['ap'], ['eu', 'ap']]);

  const all = new Map<string, Has>(
    Array.from({ length: UPSTREAMS }, (_, at) => [
      `u${at}`,
      {
        ...maybeIn('region', maybe(80, regions)),
        ...maybeIn(
          'retention',
          maybe(80, () => one([0, 7, 30, 90])),
        ),
        ...maybeIn(
          'trains',
          maybe(80, () => random.below(10) < 3),
        ),
        input: one([1, 2, 3, 5]),
        output: one([5, 10, 15]),
        context: one([8_000, 100_000, 400_000]),
      },
    ]),
  );
  const catalog = buildCatalog(
    [...all].map(([name, { region, retention, trains, input, output, context }]) => {
      const facts: ModelFacts = { region, retention, trains };
      const price = samplePrice(BigInt(input) * 100_000_000n, BigInt(output) * 100_000_000n);
      return sampleUpstream(name, [sampleModel('m', { facts, price, context })]);
    }),
  );
  const parts = {
    catalog,
    rollouts: new LiveRollouts(),
    health: new UpstreamHealth(),
    configuration: { rollouts: [] },
  };
  const routeOf = openRoutes(parts as unknown as Gateway, ['*']);
  const asked = catalog.models[0];
  if (asked === undefined) throw new Error('the catalog has no model');
  const request = { ...sampleModelRequest(), inputTokensEstimate: 1 };
  const settings = { rev: 1, name: '', allowedModels: undefined };
  const namesFor = (text: string) => {
    const narrowing: Narrowing = { request, settings, demands: text === '' ? undefined : readDemands(text) };
    return routeOf({} as JoiningCall, asked, narrowing).set.candidates.map(({ upstream }) => upstream.name);
  };

  it(`are those of ${UPSTREAMS} upstreams that a plain filter finds, for ${DEMANDS} random demands`, () => {
    let left = 0;
    for (let index = 0; index < DEMANDS; index += 1) {
      const asks: Asks = {
        ...maybeIn('region', maybe(50, regions)),
        ...maybeIn(
          'retention',
          maybe(40, () => one([0, 7, 30])),
        ),
        ...maybeIn(
          'trains',
          maybe(40, () => 'no' as const),
        ),
        ...maybeIn(
          'input',
          maybe(30, () => one([1, 2, 4])),
        ),
        ...maybeIn(
          'output',
          maybe(30, () => one([5, 12, 15])),
        ),
        ...maybeIn(
          'context',
          maybe(30, () => one([8_000, 100_000, 200_000])),
        ),
      };
      const expected = [...all].filter(([, has]) => meets(has, asks)).map(([name]) => name);
      expect(namesFor(textOf(asks)), textOf(asks)).to.have.members(expected);
      left += expected.length;
    }
    // The demands are neither so loose nor so strict that the comparison would say nothing.
    expect(left / DEMANDS).to.be.within(3, 30);
  });
});

describe('A rollout of an upstream', () => {
  const rollout: Rollout = {
    name: 'add-us',
    change: { kind: 'upstreams', model: 'm', add: ['us'], drop: ['old'], first: true },
    stickyBy: 'account',
    include: new Set(),
    exclude: new Set(),
    stages: [{ share: 1, holdMs: 0 }],
    guards: [],
    shadow: 0,
    onAbort: 'hold',
    definition: 'd',
  };
  const facts = { eu: { region: ['eu'] }, old: { region: ['eu'] }, us: { region: ['us'] } };
  const upstreams = (['eu', 'old', 'us'] as const).map((name) =>
    sampleUpstream(name, [sampleModel('m', { facts: facts[name] })]),
  );
  const catalog = buildCatalog(upstreams);
  const rollouts = new LiveRollouts();
  rollouts.follow(new Map([[rolloutKeyOf(rollout), { run: 'r', stage: 1, share: 1, isOver: false }]]));
  const parts = { catalog, rollouts, health: new UpstreamHealth(), configuration: { rollouts: [rollout] } };
  const routeOf = openRoutes(parts as unknown as Gateway, ['*']);
  const request = { ...sampleModelRequest(), inputTokensEstimate: 1 };
  const settings = { rev: 1, name: '', allowedModels: undefined };

  /** Returns the candidates of a call, and the call's group in the rollout. */
  function routed(demands: string | undefined) {
    const call = {
      id: 'c',
      key: { accountId: 'a', keyId: 'k' },
      facts: { rollout: undefined },
      onEnd: () => undefined,
    };
    const narrowing = { request, settings, demands: demands === undefined ? undefined : readDemands(demands) };
    const { set } = routeOf(call as unknown as JoiningCall, catalog.models[0] as Model, narrowing);
    const { rollout: part } = call.facts as { rollout: { readonly group: string } | undefined };
    return [set.candidates.map(({ upstream }) => upstream.name), part?.group];
  }

  it('has no group for a call whose demands exclude the new upstream, and never sends it there', () => {
    expect(routed(undefined)).to.deep.equal([['eu', 'us'], 'treatment']);
    expect(routed('region=eu')).to.deep.equal([['eu', 'old'], undefined]);
    expect(routed('region=eu,us')).to.deep.equal([['eu', 'us'], 'treatment']);
  });
});

function maybeIn<K extends string, T>(name: K, value: T | undefined): { readonly [P in K]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: T };
}
