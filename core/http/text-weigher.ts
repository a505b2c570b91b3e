import { JOINED_PAIRS } from './joined-pairs';

const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const APOSTROPHE = 0x27;
const ZERO = 0x30;
const NINE = 0x39;

/** 1 for each byte at which the inner loop stops: digits, the apostrophe, and what ends or interrupts the text of a JSON string. */
const STOPS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < SPACE || (byte >= ZERO && byte <= NINE) || [QUOTE, APOSTROPHE, BACKSLASH].includes(byte) ? 1 : 0,
);

/** How many spaces of a run make one token at the least. */
const SPACES_PER_TOKEN = 16;
/** How many digits of a run make one token. */
const DIGITS_PER_TOKEN = 3;
/** After an apostrophe words are cut at other places ('s, 'll): so many pairs do not count as joined. */
const CUT_AFTER_APOSTROPHE = 3;

/**
 * The most tokens of a run of bytes, compared with the most tokens of all of it: without its last byte, and when the last byte is
 * a token of its own or belongs to a longer one. -Infinity: it cannot be so.
 */
interface Run {
  readonly before: number;
  readonly alone: number;
  readonly longer: number;
}

const START: Run = {
  before: Number.NEGATIVE_INFINITY,
  alone: Number.NEGATIVE_INFINITY,
  longer: Number.NEGATIVE_INFINITY,
};

/**
 * Adds a byte to a run. It is a token of its own, but not beside another such byte that it joins with; or it ends a token of two bytes
 * or more, before which the run without both has its most tokens.
 */
function addByte(run: Run, isJoined: boolean): { readonly run: Run; readonly tokens: number } {
  const alone = 1 + (isJoined ? run.longer : 0);
  const longer = 1 + run.before;
  const tokens = Math.max(alone, longer);
  return { run: { before: -tokens, alone: alone - tokens, longer: longer - tokens }, tokens };
}

/** What a byte is to the inner loop: 0 or 1 says whether it joins with the byte before it. */
const LONE_SPACE = 2;
const STOP = 3;

/** At byte before × 256 + byte: what the second is to the inner loop. A space after a space is counted outside of it. */
const KINDS = JOINED_PAIRS.map((isJoined, pair) => {
  const byte = pair & 255;
  if (STOPS[byte] === 1) return STOP;
  if (byte !== SPACE) return isJoined;
  return pair >> 8 === SPACE ? STOP : LONE_SPACE;
});

/**
 * What follows a byte: the number of the run before it × 4, and what the byte is, has the number of the run with it × 4, and one more
 * where the byte adds a token.
 */
const STEPS = allSteps();

/** A space begins a run. */
const AFTER_SPACE = (STEPS[0] as number) & ~3;

function allSteps(): Uint8Array {
  const runs: Run[] = [START];
  const steps: number[] = [];
  for (let at = 0; at < runs.length; at += 1) {
    for (const isJoined of [false, true]) {
      const { run, tokens } = addByte(runs[at] as Run, isJoined && at > 0);
      const known = runs.findIndex((each) => isSame(each, run));
      const number = known === -1 ? runs.push(run) - 1 : known;
      steps.push(number * 4 + tokens);
    }
    const [afterSpace = 0] = steps;
    steps.push((afterSpace & ~3) + 1, 0);
  }
  return Uint8Array.from(steps);
}

function isSame(one: Run, other: Run): boolean {
  return one.before === other.before && one.alone === other.alone && one.longer === other.longer;
}

/**
 * Bounds the tokens of a text from its bytes, without a tokenizer.
 *
 * A tokenizer of byte pairs joins two neighbours whenever its vocabulary has what they make together. So two tokens of one byte never
 * stand side by side where the vocabulary has the pair, and in ordinary words at most two of three bytes begin a token. The weigher
 * counts the most tokens that this rule leaves possible. A byte of which it knows nothing counts as one token.
 */
export class TextWeigher {
  #tokens = 0;
  /** The number of the run under way × 4. */
  #run = 0;
  #previous = 0;
  #spaces = 0;
  #digits = 0;
  #cut = 0;

  /** The most tokens of all text so far. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Adds what has at most so many tokens and joins with nothing beside it. */
  add(tokens: number): void {
    this.#tokens += tokens;
    this.#run = 0;
    this.#previous = 0;
    this.#spaces = 0;
    this.#digits = 0;
  }

  /**
   * Adds the bytes of a JSON string, which may be cut between any two of them, up to its end or the next escape.
   * @returns where the first byte stands that is a quote, a backslash or a control character, or else `to`
   */
  text(bytes: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to) {
      const byte = bytes[at] as number;
      if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) return at;
      if (byte >= ZERO && byte <= NINE) this.#digit();
      else if (byte === SPACE) this.#space();
      else if (byte === APOSTROPHE || this.#cut > 0) this.#cutByte(byte);
      else {
        at = this.#ordinary(bytes, at, to);
        continue;
      }
      at += 1;
    }
    return to;
  }

  /** Adds a quote, a backslash or a slash that an escape says. */
  sign(byte: number): void {
    this.#step(byte, this.#cut > 0 ? 0 : (JOINED_PAIRS[(this.#previous << 8) | byte] as number));
    this.#spaces = 0;
    this.#digits = 0;
    if (this.#cut > 0) this.#cut -= 1;
  }

  /**
   * The inner loop: bytes up to the next digit, apostrophe, quote, backslash, control character or second space of a run. One branch a
   * byte, for what the next byte is can rarely be foretold.
   * @returns where that byte stands
   */
  #ordinary(bytes: Uint8Array, from: number, to: number): number {
    let tokens = this.#tokens;
    let run = this.#run;
    let previous = this.#previous;
    let at = from;
    for (; at < to; at += 1) {
      const byte = bytes[at] as number;
      const kind = KINDS[(previous << 8) | byte] as number;
      if (kind === STOP) break;
      const step = STEPS[run | kind] as number;
      tokens += step & 1;
      run = step & ~3;
      previous = byte;
    }
    this.#tokens = tokens;
    this.#run = run;
    this.#previous = previous;
    this.#spaces = previous === SPACE ? 1 : 0;
    this.#digits = 0;
    this.#cut = 0;
    return at;
  }

  /** The last space of a run goes with what follows; those before it make few tokens. */
  #space(): void {
    if (this.#spaces === 0 || this.#spaces % SPACES_PER_TOKEN === 1) this.#tokens += 1;
    this.#spaces += 1;
    this.#run = AFTER_SPACE;
    this.#previous = SPACE;
    this.#digits = 0;
    this.#cut = 0;
  }

  /** An apostrophe, or a byte soon after one: it counts as joined with nothing before it. */
  #cutByte(byte: number): void {
    this.#step(byte, 0);
    this.#spaces = 0;
    this.#digits = 0;
    this.#cut = byte === APOSTROPHE ? CUT_AFTER_APOSTROPHE : this.#cut - 1;
  }

  #digit(): void {
    if (this.#digits % DIGITS_PER_TOKEN === 0) this.#tokens += 1;
    this.#digits += 1;
    this.#spaces = 0;
    this.#run = 0;
    this.#previous = 0;
  }

  #step(byte: number, joined: number): void {
    const step = STEPS[this.#run | joined] as number;
    this.#tokens += step & 1;
    this.#run = step & ~3;
    this.#previous = byte;
  }
}
