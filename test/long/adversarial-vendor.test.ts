import { expect } from 'chai';
import { eachAtOnce } from '../../core/each-at-once';
import { type Bill, billOf, MODELS, type Ordeal, ordeal } from '../support/adversary';
import { PATH } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { seeded } from '../support/random';
import { until } from '../support/until';
import {
  chatStream,
  messagesStream,
  respond,
  type Script,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

const CALLS = Number(process.env['ADVERSARY_CALLS'] ?? 5_000);
const SEED = Number(process.env['SEED'] ?? 1);
const AT_ONCE = 32;
const ACCOUNTS = 20;
const FUNDS = 1_000_000;

/** The vendor reports the most that it may for each body, whatever is in it. */
describe(`${CALLS} calls at a vendor that reports the most it may, seed ${SEED}`, function () {
  this.timeout(3_600_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({ upstreams: { vendor: { url: upstream.url, models: MODELS } } });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  it('each costs its customer what the vendor charges for it, and no hold is too small', async () => {
    const bills = new Map<string, Bill>();
    upstream.always({
      answer: (exchange) => {
        const body = exchange.call.json as Record<string, unknown>;
        const id = String(body['user'] ?? (body['metadata'] as { user_id?: string } | undefined)?.user_id);
        const bill = bills.get(id);
        return bill === undefined ? undefined : answerWith(body, bill).answer(exchange);
      },
    });
    const customers = await Promise.all(Array.from({ length: ACCOUNTS }, () => gateway.newCustomer(String(FUNDS))));
    const owed = customers.map(() => 0n);
    const wrong: object[] = [];
    let left = 0;
    await eachAtOnce([...Array(CALLS).keys()], AT_ONCE, async (index) => {
      const random = seeded(SEED * 1_000_003 + index);
      const made = ordeal(random, String(index));
      const bill = billOf(made, random);
      bills.set(String(index), bill);
      const payer = index % ACCOUNTS;
      owed[payer] = (owed[payer] ?? 0n) + bill.costE8;
      const { key } = customers[payer] as { key: string };
      if (made.body['stream'] === true && random.below(20) === 0) {
        left += 1;
        return leaveEarly(made, key);
      }
      let answered = await gateway.call(PATH[made.protocol], { key, body: made.body });
      // On a machine that is too busy for the ledger's bound of time nobody is asked.
      while (answered.status === 503) answered = await gateway.call(PATH[made.protocol], { key, body: made.body });
      const charged = costIn(answered.text) ?? answered.headers['x-ai-cost'];
      if (answered.status !== 200 || charged !== usd(bill.costE8))
        wrong.push({ index, status: answered.status, charged, vendor: usd(bill.costE8), body: made.body });
      bills.delete(String(index));
    });
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

  /** The vendor's answer is complete by then, or will be: its report is what is paid. */
  async function leaveEarly(made: Ordeal, key: string): Promise<void> {
    const client = new LeavingClient(gateway, PATH[made.protocol], key, made.body);
    await client.sees('\r\n\r\n');
    const isAsked = !client.text.startsWith('HTTP/1.1 503');
    if (isAsked) await client.sees('data:');
    client.leave();
    return isAsked ? undefined : leaveEarly(made, key);
  }
});

function answerWith(body: Record<string, unknown>, { usage, tier }: Bill): Script {
  const isChat = body['metadata'] === undefined;
  const more = isChat && tier !== undefined ? { service_tier: tier } : {};
  if (body['stream'] !== true) {
    const message = {
      type: 'message',
      role: 'assistant',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'ok' }],
    };
    const completion = { object: 'chat.completion', choices: choicesOf(Number(body['n'] ?? 1)) };
    return respond({ body: { id: 'x', model: body['model'], ...(isChat ? completion : message), ...more, usage } });
  }
  const said = { texts: ['ok'], model: String(body['model']), rawUsage: usage };
  if (!isChat) return messagesStream(said);
  const n = Number(body['n'] ?? 1);
  return chatStream({
    ...said,
    withUsage: true,
    edit: (events) => events.flatMap((event) => forEachChoice(event, n).map((each) => withMembers(each, more))),
  });
}

function choicesOf(n: number): readonly object[] {
  const message = { role: 'assistant', content: 'ok' };
  return Array.from({ length: n }, (_, index) => ({ index, message, finish_reason: 'stop' }));
}

/** The same event for each choice; the one of the usage and the last have none. */
function forEachChoice(event: string, n: number): readonly string[] {
  if (!event.includes('"choices":[{')) return [event];
  return Array.from({ length: n }, (_, index) => event.replace('"index":0', `"index":${index}`));
}

function withMembers(event: string, more: object): string {
  if (!event.startsWith('data: {')) return event;
  return `data: ${JSON.stringify({ ...JSON.parse(event.slice(6)), ...more })}\n\n`;
}

/** `cost` in the last usage of a stream. */
function costIn(text: string): string | undefined {
  return [...text.matchAll(/"cost":([0-9.]+)/g)].at(-1)?.[1];
}

function usd(amountE8: bigint): string {
  const digits = amountE8.toString().padStart(9, '0');
  return `${digits.slice(0, -8)}.${digits.slice(-8)}`;
}
