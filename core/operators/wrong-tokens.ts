import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { fail, type GatewayError } from '../base/errors';
import { RecentlyUsed } from '../base/recently-used';
import { clientPlace, type Proxies } from '../http/proxies';
import type { OperatorRole } from './roles';

/** How many wrong tokens an address may send before it must wait. */
const FREE = 20;
/** The longest wait, in seconds. Each further wrong token doubles the wait up to this. */
const MAX_WAIT_SECONDS = 300;
/** How long after an address's last wrong token its count of wrong tokens restarts, in ms. */
const FORGOTTEN_AFTER_MS = 900_000;
/** How many addresses are remembered at least. The address whose last wrong token is oldest is dropped first. */
const MIN_PLACES = 10_000;
const LOGGED_EVERY_MS = 60_000;

interface Tries {
  count: number;
  lastMs: number;
  nextMs: number;
}

/**
 * Counts wrong operator tokens in this process by client address, and returns the error for each. The gateway accepts a valid token before
 * it looks at these counts. An attacker that guesses tokens can therefore not lock an operator out, even from the operator's own address.
 * The wait slows an attacker that respects it; any other attacker needs a new connection for each guess.
 */
export class WrongTokens {
  readonly #tries = new RecentlyUsed<Tries>(MIN_PLACES);
  readonly #log: Logger;
  readonly #proxies: Proxies;
  readonly #now: () => number;
  #slowed = 0;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(log: Logger, proxies: Proxies, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#proxies = proxies;
    this.#now = now;
  }

  /** Returns the error for a request without a valid token. A request without credentials does not count as a guess. */
  refuse(
    request: IncomingMessage,
    needed: OperatorRole,
    isGuess = request.headers.authorization !== undefined,
  ): GatewayError {
    const refused = fail('INVALID_API_KEY', {
      message: `This needs ADMIN_TOKEN, or an operator token of the role "${needed}" or above, as Authorization: Bearer.`,
      details: { needed },
    });
    if (!isGuess) return refused;
    const place = clientPlace(request, this.#proxies);
    const nowMs = this.#now();
    const tries = this.#triesOf(place, nowMs);
    if (nowMs < tries.nextMs) {
      this.#note(place, nowMs);
      return slowed(Math.ceil((tries.nextMs - nowMs) / 1_000));
    }
    tries.count += 1;
    tries.lastMs = nowMs;
    if (tries.count >= FREE)
      tries.nextMs = nowMs + Math.min(MAX_WAIT_SECONDS, 2 ** Math.min(20, tries.count - FREE)) * 1_000;
    return refused;
  }

  #triesOf(place: string, nowMs: number): Tries {
    const known = this.#tries.get(place);
    if (known !== undefined && nowMs - known.lastMs < FORGOTTEN_AFTER_MS) return known;
    return this.#tries.set(place, { count: 0, lastMs: nowMs, nextMs: nowMs });
  }

  #note(place: string, nowMs: number): void {
    this.#slowed += 1;
    if (nowMs - this.#loggedMs < LOGGED_EVERY_MS) return;
    this.#log.warn(
      { place, slowed: this.#slowed },
      'wrong admin tokens are slowed: a client is guessing tokens or has an old one',
    );
    this.#loggedMs = nowMs;
    this.#slowed = 0;
  }
}

function slowed(retryAfterSeconds: number): GatewayError {
  const headers = { connection: 'close' };
  return fail('ADMIN_TOKEN_SLOWED', { retryAfterSeconds, details: { retryAfterSeconds }, headers });
}
