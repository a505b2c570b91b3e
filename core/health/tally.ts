import { type AccountOutcome, withLatest } from './ejection';

/** What a node observed of an upstream since it last published: answers, failures and latencies. */
export interface Observed {
  readonly upstream: string;
  readonly answered: number;
  readonly failed: number;
  readonly accounts: readonly AccountOutcome[];
  readonly latencies: readonly ObservedLatency[];
}

interface ObservedLatency {
  readonly model: string;
  readonly stream: boolean;
  readonly times: number;
  readonly totalMs: number;
}

/** Observations of one upstream that this node has not yet published. */
export class Tally {
  answers = 0;
  failures = 0;
  #accounts: readonly AccountOutcome[] = [];
  readonly #latencies = new Map<string, { model: string; stream: boolean; times: number; totalMs: number }>();

  constructor(readonly upstream: string) {}

  noteLatency(model: string, stream: boolean, ms: number): void {
    const key = stream ? `${model} stream` : model;
    const latency = this.#latencies.get(key);
    if (latency === undefined) {
      this.#latencies.set(key, { model, stream, times: 1, totalMs: ms });
    } else {
      latency.times += 1;
      latency.totalMs += ms;
    }
  }

  noteAccount(outcome: AccountOutcome): void {
    const last = this.#accounts.at(-1);
    if (last?.accountId === outcome.accountId && last.hasFailed === outcome.hasFailed) return;
    this.#accounts = withLatest(this.#accounts, outcome);
  }

  read(): Observed {
    const { upstream, answers: answered, failures: failed } = this;
    return { upstream, answered, failed, accounts: this.#accounts, latencies: [...this.#latencies.values()] };
  }
}
