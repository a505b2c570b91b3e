import { expect } from 'chai';
import type { Candidate } from '../../../core/catalog/catalog';
import { UpstreamHealth } from '../../../core/health/health';
import {
  type CandidateSet,
  choose,
  openCandidateSet,
  type RankingInput,
  type RoutingChoice,
  scoreOf,
} from '../../../policies/strategy-routing/choose';
import { Exploration } from '../../../policies/strategy-routing/explore';
import {
  byCost,
  byQuality,
  bySessionCost,
  bySessionQuality,
  bySpeed,
} from '../../../policies/strategy-routing/strategies';
import { FAILED, sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { seeded } from '../../support/random';
import { sampleModelRequest } from '../../support/request-sample';

const BROKEN = { outcome: 'reset', status: undefined, verdict: 'next', retryAfterMs: undefined } as const;

describe('the choice of candidates', () => {
  let nowMs: number;
  let health: UpstreamHealth;
  let candidates: readonly Candidate[];
  let set: CandidateSet;
  beforeEach(() => {
    nowMs = 1_000_000;
    health = new UpstreamHealth({ now: () => nowMs });
    candidates = ['a', 'b', 'c'].map((name) => sampleCandidate(name));
    set = openCandidateSet(candidates, health);
  });

  const input = (more: Partial<RankingInput> = {}): RankingInput => ({
    strategy: bySpeed,
    asked: { request: sampleModelRequest(), outputTokens: undefined, inputShare: 1, sessionReadShare: 0 },
    kind: 'stream',
    nowMs,
    session: undefined,
    random: () => 0.5,
    ...more,
  });
  const namesOf = ({ order }: RoutingChoice, { candidates: of } = set) =>
    order.map((index) => of[index]?.upstream.name);
  const at = (name: string) => candidates.find(({ upstream }) => upstream.name === name) as Candidate;
  const answer = (name: string, ms: number) => health.answered(at(name), { accountId: 'one', ms, stream: true });
  const eject = (name: string) => {
    for (let call = 0; call < 5; call += 1) health.failed(at(name), BROKEN, FAILED);
  };
  const answerAll = () => [answer('a', 100), answer('b', 200), answer('c', 300)];

  it('never excludes all candidates: if all are ejected, the most reliable ranks first', () => {
    for (const name of ['a', 'b', 'c']) eject(name);
    health.failed(at('a'), BROKEN, FAILED);
    expect(namesOf(choose(set, input())).at(-1)).to.equal('a');
    expect(namesOf(choose(set, input()))).to.have.length(3);
  });

  it('sends exactly one probe to an ejected upstream when the time of its ejection is over', () => {
    answerAll();
    eject('c');
    nowMs += 30_000;
    const choice = choose(set, input());
    expect(namesOf(choice)[0]).to.equal('c');
    if (choice.asks !== undefined) health.asked(choice.asks);
    expect(namesOf(choose(set, input()))).to.deep.equal(['a', 'b']);
  });

  it('ranks the treatment candidate of a rollout first, even for sessions, unless it is ejected or rate limited', () => {
    answerAll();
    const first = openCandidateSet(candidates, health, ['c']);
    for (const session of [undefined, 1, 2, 3]) expect(namesOf(choose(first, input({ session })))[0]).to.equal('c');
    health.failed(at('c'), { ...BROKEN, outcome: 'status', status: 429, retryAfterMs: 5_000 }, FAILED);
    expect(namesOf(choose(first, input()))).to.deep.equal(['a', 'b', 'c']);
  });

  for (const { weights, last } of [
    { weights: [1, 1, 1, 1], last: 1 / 4 },
    { weights: [3, 1, 1, 1], last: (3 / 6) * (2 / 5) * (1 / 4) },
  ]) {
    it(`gives equal candidates of weights ${weights} their share of the calls`, () => {
      const equals = weights.map((weight, index) => sampleCandidate(`u${index}`, { upstream: { weight } }));
      for (const each of equals) health.answered(each, { accountId: 'one', ms: 100, stream: true });
      const all = openCandidateSet(equals, health);
      const orders = Array.from({ length: 6_000 }, () => choose(all, input({ random: Math.random })).order);
      expect(orders.every((order) => new Set(order).size === 4)).to.equal(true);
      const share = (index: number, place: number) => orders.filter((order) => order[place] === index).length / 6_000;
      const sum = weights.reduce((total, weight) => total + weight, 0);
      // Allows at least five standard deviations.
      for (const [index, weight] of weights.entries()) expect(share(index, 0)).to.be.closeTo(weight / sum, 0.033);
      expect(share(0, 3)).to.be.closeTo(last, 0.029);
    });
  }

  it('orders any number of candidates by score', () => {
    const many = Array.from({ length: 60 }, (_, index) => sampleCandidate(`u${index}`));
    for (const [index, each] of many.entries())
      health.answered(each, { accountId: 'one', ms: ((index * 37) % 60) + 1, stream: true });
    const all = openCandidateSet(many, health);
    const choice = choose(all, input());
    const scores = choice.order.map((index) => scoreOf(all, index, input()));
    expect(scores).to.deep.equal([...scores].sort((one, two) => one - two));
    expect(new Set(namesOf(choice, all)).size).to.equal(60);
  });

  describe('exploration', () => {
    it('chooses a slow upstream that has not been measured for a while', () => {
      answerAll();
      const exploration = new Exploration();
      expect(namesOf(exploration.explore(choose(set, input()), set, input()))[0]).to.equal('a');
      nowMs += 55_000;
      answer('a', 100);
      expect(namesOf(exploration.explore(choose(set, input()), set, input()))).to.deep.equal(['b', 'a', 'c']);
    });

    it('uses one call in twenty', () => {
      const exploration = new Exploration();
      answerAll();
      let explored = 0;
      for (let call = 0; call < 200; call += 1) {
        nowMs += 60_000;
        answer('a', 100);
        if (namesOf(exploration.explore(choose(set, input()), set, input()))[0] !== 'a') explored += 1;
      }
      expect(explored).to.be.within(9, 11);
    });

    for (const [name, strategy] of Object.entries({ byQuality, bySpeed, byCost, bySessionQuality, bySessionCost }))
      it(`does not choose a translated candidate before a native one (${name})`, () => {
        const natives = ['a', 'b'].map((name) => sampleCandidate(name));
        const cheap = { price: samplePrice(1n, 1n) };
        const translated = ['c', 'd'].map(
          (name): Candidate => ({
            ...sampleCandidate(name, { model: cheap, upstream: { tier: 'official' } }),
            dialect: 'chat',
          }),
        );
        const all = [...natives, ...translated];
        const mixed = openCandidateSet(all, health);
        const { below } = seeded(11);
        const random = () => below(2 ** 32) / 2 ** 32;
        const exploration = new Exploration();
        let firsts = 0;
        for (let call = 0; call < 2_000; call += 1) {
          nowMs += 1 + random() * 60_000;
          // A native candidate now and then fails, rests or is measured again; the translated ones are quick.
          for (const each of natives) {
            const chance = random();
            if (chance < 0.1) health.failed(each, { ...BROKEN, retryAfterMs: 1_000 }, FAILED);
            else if (chance < 0.8)
              health.answered(each, { accountId: 'one', ms: 1_000 + random() * 5_000, stream: true });
          }
          for (const each of translated)
            if (random() < 0.5) health.answered(each, { accountId: 'one', ms: 10, stream: true });
          const asked = input({ strategy, random, session: random() < 0.5 ? undefined : Math.floor(random() * 1e9) });
          const { order } = exploration.explore(choose(mixed, asked), mixed, asked);
          const kinds = order.map((index) => mixed.candidates[index]?.dialect === undefined);
          expect(kinds, `call ${call}`).to.deep.equal([...kinds].sort((one, two) => Number(two) - Number(one)));
          if (kinds[0] === true) firsts += 1;
        }
        expect(firsts).to.be.above(1_000);
      });
  });
});
