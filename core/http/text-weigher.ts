import { JOINED_PAIRS } from './joined-pairs';

const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const APOSTROPHE = 0x27;
const ZERO = 0x30;
const NINE = 0x39;

/**
 * 1 for each byte at which the inner loop stops: digits, the apostrophe, and bytes that end or interrupt the text of a JSON
 * string.
 */
const STOPS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < SPACE || (byte >= ZERO && byte <= NINE) || [QUOTE, APOSTROPHE, BACKSLASH].includes(byte) ? 1 : 0,
);

/** The smallest number of spaces that make one token. */
const SPACES_PER_TOKEN = 16;
/** The number of digits that make one token. */
const DIGITS_PER_TOKEN = 3;
/** After an apostrophe tokenizers split words elsewhere ('s, 'll), so this many pairs do not count as joined. */
const CUT_AFTER_APOSTROPHE = 3;

/**
 * The most tokens of a run of bytes, relative to the most tokens of the whole run: first without its last byte, then if the last
 * byte is a token of its own, then if it belongs to a longer token. -Infinity means that this case is impossible.
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
 * Adds a byte to a run. Either it is a token of its own, but not next to another single-byte token that it joins with. Or it ends
 * a token of two or more bytes; the run before that token then has its most tokens.
 */
function addByte(run: Run, isJoined: boolean): { readonly run: Run; readonly tokens: number } {
  const alone = 1 + (isJoined ? run.longer : 0);
  const longer = 1 + run.before;
  const tokens = Math.max(alone, longer);
  return { run: { before: -tokens, alone: alone - tokens, longer: longer - tokens }, tokens };
}

/** How the inner loop classifies a byte: 0 or 1 says whether it joins with the byte before it. */
const LONE_SPACE = 2;
const STOP = 3;

/**
 * The class of the second byte of a pair, at index first × 256 + second. A space after a space is counted outside of the inner
 * loop.
 */
const KINDS = JOINED_PAIRS.map((isJoined, pair) => {
  const byte = pair & 255;
  if (STOPS[byte] === 1) return STOP;
  if (byte !== SPACE) return isJoined;
  return pair >> 8 === SPACE ? STOP : LONE_SPACE;
});

/**
 * The transitions. The index is the number of the run × 4 + the class of the byte. The value is the number of the longer run × 4,
 * plus 1 if the byte adds a token.
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
 * Computes an upper bound for the tokens of a text from its bytes, without a tokenizer.
 * A byte-pair tokenizer joins two neighbours whenever its vocabulary has the result. So two single-byte tokens never stand side
 * by side if the vocabulary has the pair, and in ordinary words at most two of three bytes begin a token. The weigher counts the
 * most tokens that this rule allows. An unknown byte counts as one token.
 */
export class TextWeigher {
  #tokens = 0;
  /** The number of the current run × 4. */
  #run = 0;
  #previous = 0;
  #spaces = 0;
  #digits = 0;
  #cut = 0;

  /** The most tokens of the whole text so far. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Adds something that has at most this many tokens and joins with nothing next to it. */
  add(tokens: number): void {
    this.#tokens += tokens;
    this.#run = 0;
    this.#previous = 0;
    this.#spaces = 0;
    this.#digits = 0;
  }

  /**
   * Adds the bytes of a JSON string up to its end or the next escape. The string may be split between any two bytes.
   * @returns the offset of the first quote, backslash or control character, or else `to`
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

  /** Adds a quote, a backslash or a slash that was written as an escape. */
  sign(byte: number): void {
    this.#step(byte, this.#cut > 0 ? 0 : (JOINED_PAIRS[(this.#previous << 8) | byte] as number));
    this.#spaces = 0;
    this.#digits = 0;
    if (this.#cut > 0) this.#cut -= 1;
  }

  /**
   * The inner loop: reads bytes up to the next digit, apostrophe, quote, backslash, control character or second space of a run.
   * It has one branch for each byte, because the processor can rarely predict the next byte.
   * @returns the offset where it stopped
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

  /** The last space of a run belongs to the next word. The spaces before it make few tokens. */
  #space(): void {
    if (this.#spaces === 0 || this.#spaces % SPACES_PER_TOKEN === 1) this.#tokens += 1;
    this.#spaces += 1;
    this.#run = AFTER_SPACE;
    this.#previous = SPACE;
    this.#digits = 0;
    this.#cut = 0;
  }

  /** Adds an apostrophe, or a byte shortly after one. It counts as joined with nothing before it. */
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
