import { Counter } from 'prom-client';
import type { Protocol } from '../../core/catalog/protocols';
import type { Reading } from '../../core/dialects/reading';
import { log } from '../../core/log';
import { metrics } from '../../core/metrics';

/** Members and content parts that are in no table. A rise is an alarm: a vendor or a client has something new. */
const unknownMembers = new Counter({
  name: 'tollgate_unknown_members_total',
  help: 'Unknown request members and content parts, by protocol and by how they were treated.',
  labelNames: ['protocol', 'treatment'],
  registers: [metrics],
});

/** The most names in the log. Each is logged once, and the number is limited because names come from clients. */
const MOST_LOGGED = 200;
const logged = new Set<string>();

/** A name that cannot hold a secret or a sentence. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_.() -]{0,63}$/;

/** Counts and logs one unknown member or content part of a request. */
export function noteUnknown(protocol: Protocol, member: string, { heldMembers }: Reading): void {
  const treatment = member.startsWith('content.') || heldMembers.includes(member) ? 'outside' : 'free';
  unknownMembers.inc({ protocol, treatment });
  const shown = PLAIN_NAME.test(member) ? member : '(a name that is not shown)';
  const key = `${protocol} ${shown}`;
  if (logged.has(key) || logged.size >= MOST_LOGGED) return;
  logged.add(key);
  log.warn({ protocol, member: shown, treatment }, 'a request has an unknown member');
}
