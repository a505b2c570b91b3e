import type { Knex } from 'knex';
import type { TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { type Accounts, accountFor } from './account-for';
import { pause } from './faults';
import type { Acknowledged } from './load';
import type { Node } from './nodes';

export const VERIFIED_WITHIN_MS = 180_000;
const ARRIVES_WITHIN_MS = 90_000;

/** Waits after the last call until everything has arrived, then compares and verifies. */
export async function accountAtRest(
  database: Knex,
  acknowledged: Acknowledged,
  nodes: readonly Node[],
): Promise<{ readonly accounts: Accounts; readonly violations: readonly object[] }> {
  let accounts = await accountFor(database, acknowledged);
  for (const deadline = Date.now() + ARRIVES_WITHIN_MS; accounts.lost.length > 0 && Date.now() < deadline; ) {
    await pause(2_000);
    accounts = await accountFor(database, acknowledged);
  }
  const violations = await until('the ledger is verified', () => verifyAll(nodes), VERIFIED_WITHIN_MS);
  return { accounts: await accountFor(database, acknowledged), violations };
}

/** Returns all pages of the operator's verification; undefined while the ledger is unavailable. */
export async function verifyAll(nodes: readonly Node[]): Promise<readonly object[] | undefined> {
  const gateway: TestGateway | undefined = nodes.find((node) => node.current())?.current();
  const items: object[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `?cursor=${cursor}`;
    const answer = await gateway?.admin('GET', `/admin/v1/ledger/verify${query}`);
    if (answer?.status !== 200) return undefined;
    items.push(...answer.json.items);
    cursor = answer.json.nextCursor;
  } while (cursor !== null);
  return items;
}
