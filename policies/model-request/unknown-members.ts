import { Counter } from 'prom-client';
import type { Protocol } from '../../core/catalog/protocols';
import type { Reading } from '../../core/dialects/reading';
import { metrics } from '../../core/metrics';

/** Members, content parts and tools that are in no table. A rise is an alarm: a vendor or a client has something new. */
const unknownMembers = new Counter({
  name: 'tollgate_unknown_members_total',
  help: 'Unknown request members, content parts and tools, by protocol and by how they were treated.',
  labelNames: ['protocol', 'treatment'],
  registers: [metrics],
});

/** Counts what no table has in one request. */
export function countUnknown(protocol: Protocol, { unknownMembers: names, heldMembers }: Reading): void {
  for (const name of names) {
    const treatment = name.startsWith('content.') || heldMembers.includes(name) ? 'outside' : 'free';
    unknownMembers.inc({ protocol, treatment });
  }
}
