import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { GatewayError } from '../../../core/errors';
import { LedgerUnavailable, type RenewOutcome } from '../../../core/ledger/ledger';
import { AHEAD_SECONDS, GROWTH_TIMES, GrowingHold, mayGrow } from '../../../policies/reserve-settle/growing-hold';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { quiet } from '../../support/databases';
import { sampleModelRequest } from '../../support/request-sample';
import { until } from '../../support/until';

/** Costs one unit per token. */
const model = { price: samplePrice(0n, 1_000_000n), maxOutput: 100_000, maxTokensPerSecond: 1_000 };
const candidate = sampleCandidate('a', { model, upstream: { stopsOnCancel: true } });
const request = sampleModelRequest({ stream: true });

describe('a hold that grows', () => {
  let asked: bigint[];
  let cutOffBy: string[];
  let hold: GrowingHold;

  function grow(renew: () => Promise<RenewOutcome>, unansweredAtMostMs = 100): void {
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
    const times = { everyMs: 20, retryMs: 5, unansweredAtMostMs };
    hold = new GrowingHold(
      { ledger, log: quiet },
      call,
      { rid: 'r', request, candidates: [candidate], heldE8: 5_000n },
      times,
    );
    hold.asked();
  }

  afterEach(() => hold.stop());

  it('is extended again after the ledger was unavailable, and then covers the time that has passed', async () => {
    const answers: RenewOutcome['outcome'][] = ['not_ready', 'not_ready'];
    grow(async () => ({ outcome: answers.shift() ?? 'renewed' }) as RenewOutcome, 60_000);
    await until('it has grown twice', () => asked.length > 4);
    expect(cutOffBy).to.deep.equal([]);
    expect([...asked].sort((a, b) => Number(a - b))).to.deep.equal(asked);
    // The hold must be 5 s ahead of the time that has passed: two rounds and two retries, at least 50 ms.
    expect(hold.heldE8 >= 5_050n, String(hold.heldE8)).to.equal(true);
  });

  it('ends its call when the ledger is unavailable for long or has lost the hold', async () => {
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

  it('ends its call at once when the ledger refuses more, and sends no further requests', async () => {
    grow(async () => ({ outcome: 'key_limit_exceeded', availableE8: 1n }));
    await until('the call is cut off', () => cutOffBy.length > 0);
    expect([cutOffBy, asked.length]).to.deep.equal([['KEY_LIMIT_EXCEEDED'], 1]);
  });

  it('is not extended once its call is settled, even if an answer is on its way', async () => {
    let answer = (_: RenewOutcome): void => undefined;
    grow(() => new Promise((resolve) => (answer = resolve)));
    await until('it asks', () => asked.length === 1);
    hold.stop();
    answer({ outcome: 'insufficient_balance', availableE8: 0n });
    await sleep(30);
    expect([cutOffBy, asked.length]).to.deep.equal([[], 1]);
  });

  it('is extended at least twice before the money for the next seconds is used up', () => {
    expect(2 * GROWTH_TIMES.everyMs).to.be.below(AHEAD_SECONDS * 1_000);
  });

  it('needs a stream, and the declaration of every candidate', () => {
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
