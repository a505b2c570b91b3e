import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { GatewayError } from '../../../core/errors';
import { LedgerUnavailable, type RenewOutcome } from '../../../core/ledger/ledger';
import { AHEAD_SECONDS, GROWTH_TIMES, GrowingHold, mayGrow } from '../../../policies/reserve-settle/growing-hold';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { quiet } from '../../support/databases';
import { sampleModelRequest } from '../../support/request-sample';
import { until } from '../../support/until';

/** One unit per token. */
const model = { price: samplePrice(0n, 1_000_000n), maxOutput: 100_000, maxTokensPerSecond: 1_000 };
const candidate = sampleCandidate('a', { model, upstream: { stopsOnCancel: true } });
const request = sampleModelRequest({ stream: true });

describe('A hold that grows', () => {
  let asked: bigint[];
  let cutOffBy: string[];
  let hold: GrowingHold;

  function grow(renew: () => Promise<RenewOutcome>): void {
    asked = [];
    cutOffBy = [];
    const ledger = {
      renew: ({ amountE8 = 0n }: { amountE8?: bigint }) => {
        asked.push(amountE8);
        return renew();
      },
    };
    const call = {
      id: 'req_1',
      key: { accountId: 'account', keyId: 'key' } as never,
      declared: {},
      cutOff: (by?: GatewayError) => {
        if (by !== undefined) cutOffBy.push(by.code);
      },
    };
    const times = { everyMs: 20, retryMs: 5, unansweredAtMostMs: 100 };
    hold = new GrowingHold(
      { ledger, log: quiet },
      call,
      { rid: 'r', request, candidates: [candidate], heldE8: 5_000n },
      times,
    );
    hold.asked();
  }

  afterEach(() => hold.stop());

  it('is asked for again while the ledger cannot be asked, and what is asked for then covers the time that has gone by', async () => {
    const answers: RenewOutcome['outcome'][] = ['not_ready', 'not_ready'];
    grow(async () => ({ outcome: answers.shift() ?? 'renewed' }) as RenewOutcome);
    await until('it has grown twice', () => asked.length > 4);
    expect(cutOffBy).to.deep.equal([]);
    expect([...asked].sort((a, b) => Number(a - b))).to.deep.equal(asked);
    // 5 s ahead of what has gone by: two rounds and two retries, 50 ms at least.
    expect(hold.heldE8 >= 5_050n, String(hold.heldE8)).to.equal(true);
  });

  it('ends its call when the ledger could not be asked for long, whether it fails or has lost the hold', async () => {
    for (const answer of [
      () => Promise.reject(new LedgerUnavailable('away')),
      () => Promise.resolve<RenewOutcome>({ outcome: 'not_open' }),
    ]) {
      grow(answer);
      await until('the call is cut off', () => cutOffBy.length > 0);
      expect(cutOffBy).to.deep.equal(['LEDGER_UNAVAILABLE']);
      expect(asked.length).to.be.above(1);
      expect(hold.heldE8).to.equal(5_000n);
    }
  });

  it('ends its call at once when more is refused, and asks no more', async () => {
    grow(async () => ({ outcome: 'key_limit_exceeded', availableE8: 1n }));
    await until('the call is cut off', () => cutOffBy.length > 0);
    expect([cutOffBy, asked.length]).to.deep.equal([['KEY_LIMIT_EXCEEDED'], 1]);
  });

  it('asks no more once its call is settled, also where an answer is on its way', async () => {
    let answer = (_: RenewOutcome): void => undefined;
    grow(() => new Promise((resolve) => (answer = resolve)));
    await until('it asks', () => asked.length === 1);
    hold.stop();
    answer({ outcome: 'insufficient_balance', availableE8: 0n });
    await sleep(30);
    expect([cutOffBy, asked.length]).to.deep.equal([[], 1]);
  });

  it('grows twice at least before the seconds ahead are over', () => {
    expect(2 * GROWTH_TIMES.everyMs).to.be.below(AHEAD_SECONDS * 1_000);
  });

  it('needs a stream, and the promise of every candidate', () => {
    const { upstream } = candidate;
    const without = (more: object) => ({ ...candidate, ...more });
    expect(mayGrow(request, [candidate])).to.equal(true);
    expect(mayGrow({ ...request, stream: false }, [candidate])).to.equal(false);
    for (const stopsOnCancel of [false, undefined])
      expect(mayGrow(request, [candidate, without({ upstream: { ...upstream, stopsOnCancel } })])).to.equal(false);
    expect(mayGrow(request, [without({ model: { ...candidate.model, maxTokensPerSecond: undefined } })])).to.equal(
      false,
    );
  });
});
