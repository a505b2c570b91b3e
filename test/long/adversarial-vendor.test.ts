import { expect } from 'chai';
import { forEachConcurrent } from '../../core/base/for-each-concurrent';
import { protocolOf } from '../../core/catalog/protocols';
import { type Body, MODELS, type Ordeal, offersSearch, ordeal } from '../support/adversary';
import { type Bill, billOf } from '../support/adversary-bill';
import type { TestGateway } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { seeded } from '../support/random';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import {
  chatStream,
  messagesStream,
  respond,
  responsesAnswer,
  responsesStream,
  type Script,
} from '../support/upstream';

/** Answers a call with what the vendor charges for it. */
function answerWith({ protocol, path, body }: Ordeal, bill: Bill): Script {
  const isStream = body['stream'] === true;
  switch (protocol) {
    case 'messages':
      return messages(body, bill, isStream);
    case 'chat':
      return chat(body, bill, isStream);
    case 'responses':
      return path.endsWith('/compact') ? compacted(body, bill) : responses(body, bill, isStream);
    case 'embeddings':
      return respond({ body: { object: 'list', data: [], model: body['model'], usage: bill.usage } });
  }
}

const saidIn = (body: Body, { usage }: Bill) => ({ texts: ['ok'], model: String(body['model']), rawUsage: usage });

function messages(body: Body, bill: Bill, isStream: boolean): Script {
  const { searches } = bill;
  const usage = { ...bill.usage, ...(searches > 0 && { server_tool_use: { web_search_requests: searches } }) };
  if (isStream) return messagesStream(saidIn(body, { ...bill, usage }));
  const content = [{ type: 'text', text: 'ok' }];
  const message = { type: 'message', role: 'assistant', stop_reason: 'end_turn', content };
  return respond({ body: { id: 'x', model: body['model'], ...message, usage } });
}

function chat(body: Body, bill: Bill, isStream: boolean): Script {
  const n = Number(body['n'] ?? 1);
  const more = tierOf(bill);
  if (!isStream) {
    const completion = { object: 'chat.completion', choices: choicesOf(n) };
    return respond({ body: { id: 'x', model: body['model'], ...completion, ...more, usage: bill.usage } });
  }
  return chatStream({
    ...saidIn(body, bill),
    withUsage: true,
    edit: (events) => events.flatMap((event) => forEachChoice(event, n).map((each) => withMembers(each, more))),
  });
}

/** Makes the answer of Responses. It reports the begin and the end of each search, as the vendor does. */
function responses(body: Body, bill: Bill, isStream: boolean): Script {
  const said = { ...saidIn(body, bill), id: `resp_${body['user']}`, searches: bill.searches };
  const tier = tierOf(bill);
  if (!isStream) return responsesAnswer({ ...said, response: tier });
  return responsesStream({ ...said, response: tier });
}

function compacted(body: Body, bill: Bill): Script {
  const output = [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAA' }];
  const compaction = { id: `resp_${body['user']}`, object: 'response.compaction', created_at: 1, output };
  return respond({ body: { ...compaction, model: body['model'], ...tierOf(bill), usage: bill.usage } });
}

function tierOf({ tier }: Bill): object {
  return tier === undefined ? {} : { service_tier: tier };
}

function choicesOf(n: number): readonly object[] {
  const message = { role: 'assistant', content: 'ok' };
  return Array.from({ length: n }, (_, index) => ({ index, message, finish_reason: 'stop' }));
}

/** Repeats the event for each choice, except for the one with the usage and the last. */
function forEachChoice(event: string, n: number): readonly string[] {
  if (!event.includes('"choices":[{')) return [event];
  return Array.from({ length: n }, (_, index) => event.replace('"index":0', `"index":${index}`));
}

function withMembers(event: string, more: object): string {
  if (!event.startsWith('data: {')) return event;
  return `data: ${JSON.stringify({ ...JSON.parse(event.slice(6)), ...more })}\n\n`;
}

const CALLS = Number(process.env['ADVERSARY_CALLS'] ?? 5_000);
const SEED = Number(process.env['SEED'] ?? 1);
const AT_ONCE = 32;
const ACCOUNTS = 20;
const FUNDS = 1_000_000;

/** Sends random calls to a vendor that reports the largest usage that each body allows. */
describe(`${CALLS} calls at a vendor that reports the maximum possible usage, seed ${SEED}`, function () {
  this.timeout(3_600_000);
  const upstream = useUpstream();
  /** What the vendor charges for each call, by the number of the call. */
  const bills = new Map<number, Bill>();

  const gateway = useGateway(() => {
    const adapter = ['messages', 'chat', 'responses', 'embeddings'];
    return { upstreams: { vendor: { url: upstream.url, adapter, models: MODELS } } };
  });

  before(async () => {
    upstream.always({
      answer: (exchange) => {
        const { path, json } = exchange.call;
        const made = { protocol: protocolOf(path), path, body: json as Body };
        const index = indexOf(made);
        const bill = billOf(made, seeded(SEED * 2_000_003 + index));
        bills.set(index, bill);
        return answerWith(made, bill).answer(exchange);
      },
    });
  });

  it('each cost their customers what the vendor charges, and no hold is too small', async () => {
    const customers = await Promise.all(Array.from({ length: ACCOUNTS }, () => gateway.newCustomer(String(FUNDS))));
    const wrong: object[] = [];
    let left = 0;
    await forEachConcurrent([...Array(CALLS).keys()], AT_ONCE, async (index) => {
      const { random, made } = ordealOf(index);
      const { key } = customers[index % ACCOUNTS] as { key: string };
      if (made.body['stream'] === true && random.below(20) === 0) {
        left += 1;
        return leaveEarly(made, key);
      }
      const answered = await call(made, key);
      const charged = costIn(answered.text) ?? answered.headers['x-ai-cost'];
      const vendor = usd(bills.get(index)?.costE8 ?? 0n);
      if (answered.status !== 200 || charged !== vendor)
        wrong.push({ index, status: answered.status, charged, vendor, text: answered.text, ...made });
    });
    const owed = customers.map((_, payer) =>
      [...bills].reduce((sum, [index, { costE8 }]) => (index % ACCOUNTS === payer ? sum + costE8 : sum), 0n),
    );
    expect(wrong.length, JSON.stringify(wrong.slice(0, 3))).to.equal(0);
    for (const [index, { key, accountId }] of customers.entries()) {
      await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000', 60_000);
      const { balanceUsd } = await gateway.balance(key);
      expect(balanceUsd).to.equal(usd(BigInt(FUNDS) * 100_000_000n - (owed[index] ?? 0n)));
      expect((await gateway.admin('GET', `/admin/v1/accounts/${accountId}`)).json.excessUsd).to.equal('0.00000000');
    }
    const { text } = await gateway.admin('GET', '/metrics');
    expect(text).not.to.match(/^tollgate_(excess_usd_total|usage_doubts_total)\{/m);
    expect(left).to.be.above(0);
  });

  it('each cost customers with little money what the vendor charges, if they offer a search and are admitted', async () => {
    const offers = [...Array(CALLS).keys()]
      .map((at) => CALLS + at)
      .filter((index) => offersSearch(ordealOf(index).made));
    const limited: number[] = [];
    await forEachConcurrent(offers, AT_ONCE, async (index) => {
      const { random, made } = ordealOf(index);
      const fundsE8 = BigInt(20_000_000 + random.below(200_000_000));
      const { key, accountId } = await gateway.newCustomer(usd(fundsE8));
      const { status } = await call(made, key);
      const bill = bills.get(index);
      expect(status).to.equal(bill === undefined ? 402 : 200);
      if (bill?.searches === 1) limited.push(index);
      await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
      expect((await gateway.balance(key)).balanceUsd).to.equal(usd(fundsE8 - (bill?.costE8 ?? 0n)));
      expect((await gateway.admin('GET', `/admin/v1/accounts/${accountId}`)).json.excessUsd).to.equal('0.00000000');
    });
    expect(limited).not.to.have.length(0);
  });

  /** Repeats a call that got 503: on a busy machine the ledger is late, and then the gateway asks no upstream. */
  async function call(made: Ordeal, key: string): ReturnType<TestGateway['call']> {
    const answered = await gateway.call(made.path, { key, body: made.body });
    return answered.status === 503 ? call(made, key) : answered;
  }

  /** Disconnects after the first event. The customer must pay what the vendor reports at the end of its answer. */
  async function leaveEarly(made: Ordeal, key: string): Promise<void> {
    const client = new LeavingClient(gateway, made.path, key, made.body);
    await client.sees('\r\n\r\n');
    const isAsked = !client.text.startsWith('HTTP/1.1 503');
    if (isAsked) await client.sees('data:');
    client.leave();
    return isAsked ? undefined : leaveEarly(made, key);
  }
});

/** Returns the call of this number, and the random numbers for its client. */
function ordealOf(index: number) {
  const random = seeded(SEED * 1_000_003 + index);
  return { random, made: ordeal(random, String(index)) };
}

/** Returns the number of a call, which its client puts into a member that the vendor receives. */
function indexOf({ body }: Ordeal): number {
  return Number(body['user'] ?? (body['metadata'] as { user_id?: string } | undefined)?.user_id);
}

/** Returns `cost` of the last usage in a stream. */
function costIn(text: string): string | undefined {
  return [...text.matchAll(/"cost":([0-9.]+)/g)].at(-1)?.[1];
}

function usd(amountE8: bigint): string {
  const digits = amountE8.toString().padStart(9, '0');
  return `${digits.slice(0, -8)}.${digits.slice(-8)}`;
}
