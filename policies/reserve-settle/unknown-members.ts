import type { CallFacts, ModelRequest } from '../../core/calls/call';
import { log } from '../../core/log';

/** The most lines in the log: one for each upstream and name. The number is limited because names come from clients. */
const MOST_LOGGED = 200;
const logged = new Set<string>();

/** A name that cannot hold a secret or a sentence. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_.() -]{0,63}$/;

/**
 * Names in the log what a request has that no table and no asked upstream knows. Returns whether there is any; a call that asked
 * no upstream counts as unknown to all.
 */
export function noteUnknownMembers({ made }: Pick<CallFacts, 'made'>, { reading, protocol }: ModelRequest): boolean {
  const names = reading.unknownMembers;
  if (names.length === 0 || made.length === 0) return names.length > 0;
  let isUnknown = false;
  for (const { upstream } of made.map(({ candidate }) => candidate)) {
    for (const name of names) {
      if (upstream.freeMembers?.has(name) === true) continue;
      isUnknown = true;
      warn(upstream.name, protocol, PLAIN_NAME.test(name) ? name : '(a name that is not shown)');
    }
  }
  return isUnknown;
}

function warn(upstream: string, protocol: string, member: string): void {
  const key = `${upstream} ${member}`;
  if (logged.has(key) || logged.size >= MOST_LOGGED) return;
  logged.add(key);
  log.warn({ upstream, protocol, member }, 'a request has an unknown member');
}
