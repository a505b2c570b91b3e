import { setTimeout as pause } from 'node:timers/promises';
import { ask } from '../support/calls';
import type { TestGateway } from '../support/gateway';
import { HONEST_MODEL } from './scene';

export interface HonestCall {
  readonly status: number;
  readonly ms: number;
}

const CUSTOMERS = 4;
const EVERY_MS = 100;

/** Runs customers that call every 100 ms, every other call streamed, until they are stopped. */
export async function startHonestCustomers(gateway: TestGateway) {
  const calls: HonestCall[] = [];
  /** The cost that each answer stated in USD, by request id. */
  const told = new Map<string, string>();
  const failures: string[] = [];
  let isStopped = false;

  const callOnce = async (key: string, stream: boolean) => {
    const begunMs = performance.now();
    const { status, headers, text } = await gateway.call('/v1/messages', {
      key,
      body: ask({ model: HONEST_MODEL, stream }),
    });
    calls.push({ status, ms: performance.now() - begunMs });
    const cost = stream ? /"cost":\s*"?([\d.]+)/.exec(text)?.[1] : headers['x-ai-cost'];
    if (status === 200 && cost !== undefined) told.set(String(headers['x-svc-request-id']), cost);
    else failures.push(`${status} ${text.slice(-300)}`);
  };
  const customer = async (key: string) => {
    for (let count = 0; !isStopped; count += 1) {
      await callOnce(key, count % 2 === 0).catch((error: unknown) => {
        calls.push({ status: 0, ms: 0 });
        failures.push(String(error));
      });
      await pause(EVERY_MS);
    }
  };
  const keys = await Promise.all(Array.from({ length: CUSTOMERS }, () => gateway.newCustomer('1000')));
  const working = keys.map(({ key }) => customer(key));
  return {
    told,
    failures,
    /** Returns the calls since the previous request. */
    take: () => calls.splice(0),
    stop: async () => {
      isStopped = true;
      await Promise.all(working);
    },
  };
}
